#include "runnel/io/canvas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runnel/io/image.h"
#include "tests/support/expect_error.h"

namespace runnel::io {
namespace {

using test::expect_error;

constexpr Color kWhite{255, 255, 255}, kBlack{0, 0, 0}, kRed{255, 0, 0}, kBlue{0, 0, 255};

int darkness(const Canvas& canvas, int64_t x, int64_t y) { return 255 - canvas.pixel(x, y).green; }

// All that is not white, in whole pixels.
double ink(const Canvas& canvas) {
  double sum = 0;
  for (int64_t y = 0; y < canvas.pixel_height(); ++y) {
    for (int64_t x = 0; x < canvas.pixel_width(); ++x) sum += darkness(canvas, x, y) / 255.0;
  }
  return sum;
}

TEST(Canvas, BoxesHaveSharpBorders) {
  Canvas canvas(20, 12, kWhite);
  canvas.box(2.3, 3.4, 10, 6, 0, kBlue, kRed);
  EXPECT_EQ(canvas.pixel(2, 5).red, 255);
  EXPECT_EQ(canvas.pixel(2, 5).blue, 0);
  EXPECT_EQ(canvas.pixel(3, 5).blue, 255);
  EXPECT_EQ(canvas.pixel(3, 5).red, 0);
  EXPECT_EQ(canvas.pixel(12, 5).red, 255);
  EXPECT_EQ(canvas.pixel(12, 5).blue, 0);
  EXPECT_EQ(canvas.pixel(1, 5).green, 255);
  EXPECT_EQ(canvas.pixel(13, 5).green, 255);
  Canvas round(20, 20, kWhite);
  round.box(2, 2, 15, 15, 5, kBlack, kBlack);
  EXPECT_EQ(darkness(round, 2, 2), 0) << "the corner is cut off";
  EXPECT_EQ(darkness(round, 9, 2), 255);
  EXPECT_NEAR(ink(round), 16 * 16 - (4 - M_PI) * 5.5 * 5.5, 2);
}

TEST(Canvas, LinesCoverTheirArea) {
  for (const double scale : {1.0, 2.5}) {
    Canvas canvas(60, 40, kWhite, scale);
    const CanvasPoint points[] = {{10, 10}, {40, 10}, {40, 30}};
    canvas.line(points, 3, kBlack);
    // Two straight parts, a round end at both sides, the corner once.
    const double area = (30 + 20) * 3 + M_PI * 1.5 * 1.5 / 2 * 2 - 1.5 * 1.5 + M_PI * 1.5 * 1.5 / 4;
    EXPECT_NEAR(ink(canvas) / (scale * scale), area, 2.5);
  }
  Canvas outside(10, 10, kWhite);
  const CanvasPoint far[] = {{-50, -50}, {50, 60}};
  outside.line(far, 2, kBlack);
  EXPECT_GT(ink(outside), 10);
}

TEST(Canvas, TrianglesEitherWayRound) {
  for (const bool clockwise : {true, false}) {
    Canvas canvas(30, 30, kWhite);
    const CanvasPoint a{5, 5}, b{25, 5}, c{5, 25};
    clockwise ? canvas.triangle(a, b, c, kBlack) : canvas.triangle(a, c, b, kBlack);
    EXPECT_NEAR(ink(canvas), 200, 3);
    EXPECT_EQ(darkness(canvas, 10, 10), 255);
    EXPECT_EQ(darkness(canvas, 20, 20), 0);
  }
}

TEST(Canvas, EveryLetterIsDrawnWithinItsPlace) {
  std::vector<double> seen;
  for (char c = '!'; c <= '~'; ++c) {
    Canvas canvas(40, 40, kWhite);
    const std::string text(1, c);
    canvas.text({10, 25}, text, 16, kBlack);
    EXPECT_GT(ink(canvas), 1) << c;
    const double right = 10 + text_width(text, 16);
    for (int64_t y = 0; y < 40; ++y) {
      for (int64_t x = 0; x < 40; ++x) {
        const bool inside = x >= 9 && static_cast<double>(x) <= right && y >= 11 && y <= 31;
        EXPECT_TRUE(inside || darkness(canvas, x, y) == 0) << c << " at " << x << ", " << y;
      }
    }
    Canvas bold(40, 40, kWhite);
    bold.text({10, 25}, text, 16, kBlack, true);
    EXPECT_GT(ink(bold), ink(canvas)) << c;
  }
  EXPECT_EQ(text_width("", 12), 0);
  EXPECT_NEAR(text_width("ab", 12) * 2, text_width("abab", 12), 1e-9);
  EXPECT_GT(text_width("m", 12), text_width("i", 12));
  EXPECT_EQ(text_width("\xc3\xb6", 12), text_width("\xe2\x82\xac", 12)) << "one box for any other character";
}

TEST(Canvas, LettersLookDifferent) {
  std::vector<std::vector<uint8_t>> pictures;
  for (char c = ' '; c <= '~'; ++c) {
    Canvas canvas(24, 24, kWhite);
    canvas.text({2, 17}, std::string(1, c), 16, kBlack);
    std::vector<uint8_t> picture;
    for (int64_t y = 0; y < 24; ++y) {
      for (int64_t x = 0; x < 24; ++x) picture.push_back(canvas.pixel(x, y).green);
    }
    for (const auto& other : pictures) EXPECT_NE(other, picture) << c;
    pictures.push_back(picture);
  }
}

TEST(Canvas, BecomesAPng) {
  Canvas canvas(7, 5, kWhite);
  canvas.box(1, 1, 3, 2, 0, kBlue, kRed);
  const std::string png = canvas.png();
  std::vector<uint8_t> pixels;
  const ImageSize size = decode_png(as_bytes(png), {.channels = 3}, [&](const ImageSize& s) -> void* {
    pixels.resize(static_cast<size_t>(s.samples()));
    return pixels.data();
  });
  EXPECT_EQ(size.width, 7);
  EXPECT_EQ(size.height, 5);
  for (int64_t y = 0; y < 5; ++y) {
    for (int64_t x = 0; x < 7; ++x) {
      const Color color = canvas.pixel(x, y);
      const uint8_t* at = &pixels[static_cast<size_t>((y * 7 + x) * 3)];
      EXPECT_TRUE(at[0] == color.red && at[1] == color.green && at[2] == color.blue) << x << ", " << y;
    }
  }
  expect_error([] { Canvas(0, 3, kWhite); }, Code::invalid_argument, "empty or too large");
  expect_error([] { Canvas(1e9, 1e9, kWhite); }, Code::invalid_argument, "empty or too large");
}

}  // namespace
}  // namespace runnel::io
