#include "runnel/io/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <webp/encode.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
// jpeglib.h wants FILE first.
#include <jpeglib.h>

#include "runnel/base/error.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/image_files.h"

namespace runnel::io {
namespace {

using namespace runnel::test;

struct Pixels {
  ImageSize size;
  std::vector<uint8_t> data;
  std::vector<int> at(int64_t y, int64_t x, int64_t frame = 0) const {
    const auto* p = data.data() + ((frame * size.height + y) * size.width + x) * size.channels;
    return {p, p + size.channels};
  }
};

// decode is called with bytes, options and a sink.
template <class D, class O>
Pixels decoded(D decode, const std::string& bytes, const O& options = {}, size_t sample_bytes = 1) {
  Pixels p;
  int asked = 0;
  p.size = decode(as_bytes(bytes), options, [&](const ImageSize& s) -> void* {
    ++asked;
    p.data.resize(static_cast<size_t>(s.samples()) * sample_bytes);
    return p.data.data();
  });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(p.data.size(), static_cast<size_t>(p.size.samples()) * sample_bytes);
  return p;
}
// Those of bytes, among the functions of these names.
constexpr auto as_jpeg = [](const auto&... a) { return decode_jpeg(a...); };
constexpr auto as_png = [](const auto&... a) { return decode_png(a...); };
constexpr auto as_gif = [](const auto&... a) { return decode_gif(a...); };
constexpr auto as_bmp = [](const auto&... a) { return decode_bmp(a...); };
Pixels jpeg(const std::string& bytes, const JpegDecodeOptions& o = {}) { return decoded(as_jpeg, bytes, o); }
Pixels png(const std::string& bytes, const PngDecodeOptions& o = {}) { return decoded(as_png, bytes, o); }
Pixels gif(const std::string& bytes, const GifDecodeOptions& o = {}) { return decoded(as_gif, bytes, o); }
Pixels bmp(const std::string& bytes, const BmpDecodeOptions& o = {}) { return decoded(as_bmp, bytes, o); }
Pixels webp(const std::string& bytes, const WebpDecodeOptions& o = {}) { return decoded(decode_webp, bytes, o); }

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument) << e.what();
    return e.what();
  }
  return "no error";
}

std::vector<uint8_t> smooth(int64_t h, int64_t w, int64_t c) {
  std::vector<uint8_t> v;
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      for (int64_t k = 0; k < c; ++k) v.push_back(static_cast<uint8_t>(128 + 100 * std::sin(0.05 * (x + y + 30 * k))));
    }
  }
  return v;
}

TEST(ImageFormat, ByFirstBytes) {
  EXPECT_EQ(image_format(as_bytes(std::string("\xff\xd8\xff\xe0"))), ImageFormat::jpeg);
  EXPECT_EQ(image_format(as_bytes(std::string("\x89PNG\r\n\x1a\n"))), ImageFormat::png);
  EXPECT_EQ(image_format(as_bytes(std::string("GIF87a"))), ImageFormat::gif);
  EXPECT_EQ(image_format(as_bytes(std::string("BM"))), ImageFormat::bmp);
  EXPECT_EQ(image_format(as_bytes(std::string("RIFF....WEBPVP8 "))), ImageFormat::webp);
  EXPECT_EQ(image_format(as_bytes(std::string("RIFF....WAVEfmt "))), ImageFormat::unknown);
  EXPECT_EQ(image_format({}), ImageFormat::unknown);
}

// --- JPEG ---

TEST(Jpeg, ComesBackNearly) {
  for (int64_t c : {1, 3}) {
    const auto image = smooth(45, 70, c);
    for (bool progressive : {false, true}) {
      const std::string file = encode_jpeg(image.data(), {1, 45, 70, c}, {.progressive = progressive});
      const Pixels p = jpeg(file);
      ASSERT_EQ(p.size.height, 45);
      ASSERT_EQ(p.size.width, 70);
      ASSERT_EQ(p.size.channels, c);
      for (size_t i = 0; i < image.size(); ++i) ASSERT_NEAR(p.data[i], image[i], 12) << i;
    }
  }
}

// The same file through libjpeg's plainest way.
std::vector<uint8_t> reference(const std::string& file, int& width, int& height) {
  jpeg_decompress_struct c;
  jpeg_error_mgr err;
  c.err = jpeg_std_error(&err);
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&c, TRUE);
  c.out_color_space = JCS_RGB;
  jpeg_start_decompress(&c);
  width = static_cast<int>(c.output_width), height = static_cast<int>(c.output_height);
  std::vector<uint8_t> all(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  while (c.output_scanline < c.output_height) {
    JSAMPROW row = all.data() + c.output_scanline * static_cast<size_t>(width) * 3;
    jpeg_read_scanlines(&c, &row, 1);
  }
  jpeg_finish_decompress(&c);
  jpeg_destroy_decompress(&c);
  return all;
}

std::vector<std::filesystem::path> photographs() {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(fixtures() / "cats_vs_dogs" / "valid" / "cats")) {
    files.push_back(e.path());
  }
  std::sort(files.begin(), files.end());
  files.resize(std::min<size_t>(files.size(), 12));
  return files;
}

TEST(Jpeg, PhotographsAsLibjpegDecodesThem) {
  RUNNEL_REQUIRE_FIXTURES();
  for (const auto& path : photographs()) {
    const std::string file = read_bytes(path);
    int width, height;
    const auto expected = reference(file, width, height);
    const Pixels p = jpeg(file, {.channels = 3, .fast_dct = false});
    ASSERT_EQ(p.size.width, width) << path;
    ASSERT_EQ(p.size.height, height);
    EXPECT_EQ(p.data, expected) << path;
    const ImageSize header = jpeg_size(as_bytes(file));
    EXPECT_EQ(header.width, width);
    EXPECT_EQ(header.height, height);
    // The fast transform differs by little.
    const Pixels fast = jpeg(file, {.channels = 3});
    double off = 0;
    for (size_t i = 0; i < expected.size(); ++i) off += std::abs(fast.data[i] - expected[i]);
    EXPECT_LT(off / static_cast<double>(expected.size()), 2.0) << path;
  }
}

TEST(Jpeg, WindowIsThatPartOfTheWhole) {
  RUNNEL_REQUIRE_FIXTURES();
  for (const auto& path : photographs()) {
    const std::string file = read_bytes(path);
    const Pixels whole = jpeg(file);
    const int64_t h = whole.size.height / 3, w = whole.size.width / 2, y = whole.size.height / 4, x = 13;
    const Pixels part = jpeg(file, {.crop = true, .crop_y = y, .crop_x = x, .crop_height = h, .crop_width = w});
    ASSERT_EQ(part.size.height, h);
    ASSERT_EQ(part.size.width, w);
    for (int64_t i = 0; i < h; ++i) {
      for (int64_t j = 0; j < w; ++j) ASSERT_EQ(part.at(i, j), whole.at(y + i, x + j)) << path;
    }
  }
  const auto image = smooth(10, 10, 3);
  const std::string file = encode_jpeg(image.data(), {1, 10, 10, 3}, {});
  EXPECT_THAT(message([&] { jpeg(file, {.crop = true, .crop_y = 5, .crop_height = 6, .crop_width = 3}); }),
              ::testing::HasSubstr("the window at row 5"));
}

TEST(Jpeg, SmallerByRatioOrToAtLeast) {
  const auto image = smooth(101, 200, 3);
  const std::string file = encode_jpeg(image.data(), {1, 101, 200, 3}, {});
  for (int ratio : {1, 2, 4, 8}) {
    const Pixels p = jpeg(file, {.ratio = ratio});
    EXPECT_EQ(p.size.height, (101 + ratio - 1) / ratio);
    EXPECT_EQ(p.size.width, (200 + ratio - 1) / ratio);
  }
  EXPECT_EQ(jpeg(file, {.min_height = 26, .min_width = 50}).size.height, 26);
  EXPECT_EQ(jpeg(file, {.min_height = 27, .min_width = 50}).size.height, 51);
  EXPECT_EQ(jpeg(file, {.min_height = 1, .min_width = 1}).size.height, 13);
  EXPECT_EQ(jpeg(file, {.min_height = 500, .min_width = 500}).size.height, 101);
  EXPECT_THAT(message([&] { jpeg(file, {.ratio = 3}); }), ::testing::HasSubstr("ratio must be 1, 2, 4 or 8"));
}

TEST(Jpeg, EveryTruncationIsAnErrorOrRecovered) {
  const auto image = smooth(64, 64, 3);
  const std::string file = encode_jpeg(image.data(), {1, 64, 64, 3}, {});
  for (size_t n = 0; n + 3 < file.size(); n += 7) {
    EXPECT_THAT(message([&] { jpeg(file.substr(0, n)); }), ::testing::HasSubstr("JPEG: ")) << n;
  }
  const std::string half = file.substr(0, file.size() / 2 + 200);
  EXPECT_THAT(message([&] { jpeg(half); }), ::testing::HasSubstr("try_recover_truncated"));
  const Pixels p = jpeg(half, {.try_recover_truncated = true, .acceptable_fraction = 0.2});
  EXPECT_NEAR(p.at(0, 0)[0], image[0], 12);
  EXPECT_THAT(message([&] { jpeg(half, {.try_recover_truncated = true, .acceptable_fraction = 0.99}); }),
              ::testing::HasSubstr("acceptable_fraction is 0.99"));
}

TEST(Jpeg, SizesAreBounded) {
  const auto image = smooth(64, 64, 1);
  const std::string file = encode_jpeg(image.data(), {1, 64, 64, 1}, {});
  EXPECT_THAT(message([&] { jpeg(file, {.max_pixels = 4095}); }), ::testing::HasSubstr("4095 pixels allowed"));
  std::string huge = file;
  const size_t frame = huge.find("\xff\xc0");
  huge.replace(frame + 5, 4, "\xff\xff\xff\xff");  // 65535 x 65535
  EXPECT_THAT(message([&] { jpeg(huge); }), ::testing::HasSubstr("JPEG: "));
}

TEST(Jpeg, Encoding) {
  const auto image = smooth(40, 40, 3);
  const ImageSize size{1, 40, 40, 3};
  const std::string plain = encode_jpeg(image.data(), size, {});
  EXPECT_LT(encode_jpeg(image.data(), size, {.quality = 10}).size(), plain.size());
  EXPECT_LT(encode_jpeg(image.data(), size, {.optimize_size = true}).size(), plain.size());
  EXPECT_GT(encode_jpeg(image.data(), size, {.chroma_downsampling = false}).size(), plain.size());
  const std::string tagged =
      encode_jpeg(image.data(), size, {.density_unit = "cm", .x_density = 7, .xmp_metadata = "<x/>"});
  EXPECT_THAT(tagged, ::testing::HasSubstr("http://ns.adobe.com/xap/1.0/"));
  EXPECT_EQ(tagged[13], 2);
  EXPECT_EQ(tagged[15], 7);
  EXPECT_EQ(jpeg(tagged).data, jpeg(plain).data);
  EXPECT_THAT(message([&] { encode_jpeg(image.data(), {1, 40, 20, 6}, {}); }), ::testing::HasSubstr("6 channels"));
  EXPECT_THAT(message([&] { encode_jpeg(image.data(), {1, 0, 20, 3}, {}); }), ::testing::HasSubstr("20 x 0"));
  EXPECT_THAT(message([&] { encode_jpeg(image.data(), size, {.density_unit = "m"}); }),
              ::testing::HasSubstr("density_unit"));
}

// --- PNG ---

TEST(Png, ComesBackExactly) {
  for (int64_t c = 1; c <= 4; ++c) {
    const auto image = smooth(9, 14, c);
    EXPECT_EQ(png(encode_png(image.data(), {1, 9, 14, c}, {})).data, image) << c;
    std::vector<uint16_t> deep;
    for (size_t i = 0; i < image.size(); ++i) deep.push_back(static_cast<uint16_t>(image[i] * 257 + i % 5));
    const std::string file = encode_png(deep.data(), {1, 9, 14, c}, {.compression = 1});
    const Pixels wide = decoded(as_png, file, PngDecodeOptions{.wide = true}, 2);
    EXPECT_EQ(std::memcmp(wide.data.data(), deep.data(), deep.size() * 2), 0) << c;
    const Pixels narrow = png(file);
    for (size_t i = 0; i < deep.size(); ++i) ASSERT_EQ(narrow.data[i], deep[i] >> 8);
  }
}

TEST(Png, EveryDepthAndInterlacing) {
  for (bool interlaced : {false, true}) {
    for (int bits : {1, 2, 4, 8}) {
      const uint32_t top = (1u << bits) - 1;
      const std::string file = png_file({19, 11, bits, 0, interlaced, ""},
                                        [&](uint32_t x, uint32_t y, int) { return (x * 3 + y * 5) & top; });
      const Pixels p = png(file);
      ASSERT_EQ(p.size.channels, 1);
      for (uint32_t y = 0; y < 11; ++y) {
        for (uint32_t x = 0; x < 19; ++x) {
          ASSERT_EQ(p.at(y, x)[0], static_cast<int>(((x * 3 + y * 5) & top) * 255 / top)) << bits << interlaced;
        }
      }
    }
  }
}

TEST(Png, PalettesAndTransparency) {
  const std::string colors = png_chunk("PLTE", std::string("\x10\x20\x30\x40\x50\x60\x70\x80\x90", 9));
  const auto index = [](uint32_t x, uint32_t y, int) { return (x + y) % 3; };
  const Pixels plain = png(png_file({4, 3, 2, 3, false, colors}, index));
  EXPECT_EQ(plain.size.channels, 3);
  EXPECT_THAT(plain.at(1, 1), ::testing::ElementsAre(0x70, 0x80, 0x90));
  const std::string tones = png_chunk("tRNS", std::string("\x80\x00", 2));
  const std::string file = png_file({4, 3, 2, 3, true, colors + tones}, index);
  const Pixels clear = png(file);
  EXPECT_EQ(clear.size.channels, 4);
  EXPECT_THAT(clear.at(0, 0), ::testing::ElementsAre(0x10, 0x20, 0x30, 0x80));
  EXPECT_THAT(clear.at(0, 1), ::testing::ElementsAre(0x40, 0x50, 0x60, 0));
  EXPECT_THAT(clear.at(0, 2), ::testing::ElementsAre(0x70, 0x80, 0x90, 255));
  EXPECT_EQ(png(file, {.channels = 3}).at(0, 1), (std::vector{0x40, 0x50, 0x60}));
  EXPECT_EQ(png(file, {.channels = 1}).size.channels, 1);
}

TEST(Png, OtherChannelsThanTheFileHas) {
  const std::string grey = png_file({3, 2, 8, 0}, [](uint32_t x, uint32_t y, int) { return 10 * x + y; });
  EXPECT_EQ(png(grey, {.channels = 3}).at(1, 2), (std::vector{21, 21, 21}));
  EXPECT_EQ(png(grey, {.channels = 4}).at(1, 2), (std::vector{21, 21, 21, 255}));
  EXPECT_EQ(png(grey, {.channels = 2}).at(1, 2), (std::vector{21, 255}));
  const std::string rgba = png_file({3, 2, 8, 6}, [](uint32_t, uint32_t, int c) { return 40u * (c + 1); });
  EXPECT_EQ(png(rgba, {.channels = 3}).at(0, 0), (std::vector{40, 80, 120}));
  EXPECT_NEAR(png(rgba, {.channels = 1}).at(0, 0)[0], 0.299 * 40 + 0.587 * 80 + 0.114 * 120, 1);
  const Pixels wide = decoded(as_png, grey, PngDecodeOptions{.channels = 4, .wide = true}, 2);
  uint16_t first[4];
  std::memcpy(first, wide.data.data() + (1 * 3 + 2) * 8, 8);
  EXPECT_THAT(first, ::testing::ElementsAre(21 * 257, 21 * 257, 21 * 257, 65535));
}

TEST(Png, DamageIsNamed) {
  const auto image = smooth(20, 20, 3);
  const std::string file = encode_png(image.data(), {1, 20, 20, 3}, {});
  for (size_t n = 0; n < file.size(); n += 5) {
    EXPECT_THAT(message([&] { png(file.substr(0, n)); }), ::testing::HasSubstr("PNG: ")) << n;
  }
  EXPECT_THAT(message([&] { png(file.substr(0, file.size() - 30)); }), ::testing::HasSubstr("the data ends early"));
  std::string wrong = file;
  wrong[60] = static_cast<char>(wrong[60] ^ 1);
  EXPECT_THAT(message([&] { png(wrong); }), ::testing::HasSubstr("near byte"));
  EXPECT_THAT(message([&] { png(file, {.max_pixels = 399}); }), ::testing::HasSubstr("399 pixels allowed"));
}

// --- GIF ---

const std::string kFour("\0\0\0\xff\0\0\0\xff\0\0\0\xff", 12);  // black, red, green, blue

TEST(Gif, FramesAreDrawnOverEachOther) {
  const std::string file = gif_file(3, 2, kFour,
                                    {{0, 0, 3, 2, {1, 1, 1, 2, 2, 2}},
                                     {1, 0, 2, 1, {3, 0}, 0},   // the black one lets the red through
                                     {0, 1, 1, 1, {3}, -1, 2},  // then cleared
                                     {2, 0, 1, 1, {2}, -1, 3},  // then as before
                                     {0, 0, 1, 1, {3}}});
  const Pixels p = gif(file);
  ASSERT_EQ(p.size.frames, 5);
  ASSERT_EQ(p.size.channels, 3);
  const std::vector red{255, 0, 0}, green{0, 255, 0}, blue{0, 0, 255}, black{0, 0, 0};
  const auto row = [&](int64_t k, int64_t y) { return std::vector{p.at(y, 0, k), p.at(y, 1, k), p.at(y, 2, k)}; };
  EXPECT_EQ(row(0, 0), (std::vector{red, red, red}));
  EXPECT_EQ(row(1, 0), (std::vector{red, blue, red}));
  EXPECT_EQ(row(2, 1), (std::vector{blue, green, green}));
  EXPECT_EQ(row(3, 1), (std::vector{black, green, green}));
  EXPECT_EQ(row(3, 0), (std::vector{red, blue, green}));
  EXPECT_EQ(row(4, 0), (std::vector{blue, blue, red}));
  EXPECT_EQ(gif(file, {.first_frame_only = true}).size.frames, 1);
}

TEST(Gif, LongRunsFillTheTable) {
  std::string palette;
  for (int i = 0; i < 256; ++i) palette += std::string(3, static_cast<char>(i));
  std::vector<uint8_t> indices;
  uint32_t seed = 1;
  for (int i = 0; i < 200 * 150; ++i) {
    seed = seed * 1664525u + 1013904223u;
    indices.push_back(static_cast<uint8_t>(i % 7 == 0 ? seed >> 24 : i / 100));
  }
  const Pixels p = gif(gif_file(200, 150, palette, {{0, 0, 200, 150, indices}}));
  for (size_t i = 0; i < indices.size(); ++i) ASSERT_EQ(p.data[3 * i], indices[i]) << i;
}

TEST(Gif, Interlaced) {
  std::vector<uint8_t> rows;
  for (int y : {0, 8, 4, 2, 6, 10, 1, 3, 5, 7, 9}) rows.push_back(static_cast<uint8_t>(y % 4));
  const Pixels p = gif(
      gif_file(1, 11, kFour, {{.left = 0, .top = 0, .width = 1, .height = 11, .indices = rows, .interlaced = true}}));
  for (int y = 0; y < 11; ++y) {
    for (int c = 0; c < 3; ++c) EXPECT_EQ(p.at(y, 0)[static_cast<size_t>(c)], y % 4 == c + 1 ? 255 : 0) << y;
  }
}

TEST(Gif, DamageIsNamed) {
  const std::string file = gif_file(3, 2, kFour, {{0, 0, 3, 2, {1, 1, 1, 2, 2, 2}}});
  for (size_t n = 0; n + 1 < file.size(); ++n) {
    EXPECT_THAT(message([&] { gif(file.substr(0, n)); }), ::testing::HasSubstr("GIF: ")) << n;
  }
  EXPECT_EQ(gif(file.substr(0, file.size() - 1)).size.frames, 1);  // the trailer alone is missing
  EXPECT_THAT(message([&] {
                gif(gif_file(3, 2, kFour, {{0, 0, 3, 2, {1, 1, 1}}}));
              }),
              ::testing::HasSubstr("frame 0 ends after 3 of 6 pixels"));
  EXPECT_THAT(message([&] { gif(file, {.max_pixels = 5}); }), ::testing::HasSubstr("5 pixels allowed"));
  EXPECT_THAT(message([&] { gif(gif_file(3, 2, kFour, {})); }), ::testing::HasSubstr("holds no image"));
}

// --- BMP ---

TEST(Bmp, Depths) {
  // 2 x 2, rows from the bottom, each filled up to four bytes.
  const Pixels rgb = bmp(bmp_file(2, 2, 24, "", std::string("\1\2\3\4\5\6\0\0\7\10\11\12\13\14\0\0", 16)));
  EXPECT_EQ(rgb.size.channels, 3);
  EXPECT_EQ(rgb.at(1, 0), (std::vector{3, 2, 1}));
  EXPECT_EQ(rgb.at(0, 1), (std::vector{12, 11, 10}));
  const Pixels down = bmp(bmp_file(2, -2, 24, "", std::string("\1\2\3\4\5\6\0\0\7\10\11\12\13\14\0\0", 16)));
  EXPECT_EQ(down.at(0, 0), (std::vector{3, 2, 1}));
  const Pixels rgba = bmp(bmp_file(1, 1, 32, "", "\1\2\3\4"));
  EXPECT_EQ(rgba.at(0, 0), (std::vector{3, 2, 1, 4}));
  const std::string greys("\0\0\0\0\xff\xff\xff\0", 8), colors("\1\2\3\0\4\5\6\0", 8);
  const Pixels bits = bmp(bmp_file(10, 1, 1, greys, std::string("\xA0\x40\0\0", 4)));
  EXPECT_EQ(bits.size.channels, 1);
  for (int x = 0; x < 10; ++x) EXPECT_EQ(bits.at(0, x)[0], x == 0 || x == 2 || x == 9 ? 255 : 0) << x;
  EXPECT_EQ(bmp(bmp_file(2, 1, 4, colors, std::string("\x10\0\0\0", 4))).at(0, 0), (std::vector{6, 5, 4}));
  EXPECT_EQ(bmp(bmp_file(2, 1, 8, colors, std::string("\1\0\0\0", 4))).at(0, 1), (std::vector{3, 2, 1}));
  std::string masks;
  for (uint32_t m : {0xf800u, 0x7e0u, 0x1fu}) put_le(masks, m, 4);
  EXPECT_EQ(bmp(bmp_file(1, 1, 16, "", std::string("\x1f\xf8\0\0", 4), 3, masks)).at(0, 0), (std::vector{255, 0, 255}));
  EXPECT_EQ(bmp(bmp_file(1, 1, 24, "", "\1\2\3\4"), {.channels = 4}).at(0, 0), (std::vector{3, 2, 1, 255}));
  EXPECT_EQ(bmp(bmp_file(1, 1, 24, "", std::string(4, '\x64')), {.channels = 1}).at(0, 0), (std::vector{100}));
}

TEST(Bmp, DamageIsNamed) {
  const std::string file = bmp_file(2, 2, 24, "", std::string(16, '\1'));
  for (size_t n = 0; n < file.size() - 2; ++n) {
    EXPECT_THAT(message([&] { bmp(file.substr(0, n)); }), ::testing::HasSubstr("BMP: ")) << n;
  }
  EXPECT_THAT(message([&] { bmp(bmp_file(0, 2, 24, "", "")); }), ::testing::HasSubstr("0 x 2"));
  EXPECT_THAT(message([&] { bmp(bmp_file(1 << 30, 1 << 30, 24, "", "")); }), ::testing::HasSubstr("pixels allowed"));
  EXPECT_THAT(message([&] { bmp(bmp_file(2, 2, 5, "", "")); }), ::testing::HasSubstr("5 bits per pixel"));
  expect_error([] { bmp(bmp_file(2, 2, 8, "", "", 1)); }, Code::unimplemented, "compression 1");
}

// --- WebP ---

std::string webp_file(const std::vector<uint8_t>& rgba, int width, int height, bool alpha) {
  uint8_t* out = nullptr;
  const size_t n = alpha ? WebPEncodeLosslessRGBA(rgba.data(), width, height, width * 4, &out)
                         : WebPEncodeLosslessRGB(rgba.data(), width, height, width * 3, &out);
  std::string s(reinterpret_cast<const char*>(out), n);
  WebPFree(out);
  return s;
}

TEST(Webp, ComesBackExactly) {
  const auto rgb = smooth(21, 34, 3);
  const Pixels p = webp(webp_file(rgb, 34, 21, false));
  EXPECT_EQ(p.size.channels, 3);
  EXPECT_EQ(p.data, rgb);
  const Pixels four = webp(webp_file(rgb, 34, 21, false), {.channels = 4});
  EXPECT_EQ(four.at(3, 5)[3], 255);
  auto rgba = smooth(21, 34, 4);
  const Pixels q = webp(webp_file(rgba, 34, 21, true));
  EXPECT_EQ(q.size.channels, 4);
  EXPECT_EQ(q.data, rgba);
}

TEST(Webp, Animations) {
  auto a = smooth(8, 6, 4), b = a;
  for (size_t i = 0; i < b.size(); ++i) {
    if (i % 4 == 3)
      a[i] = b[i] = 255;
    else
      b[i] = static_cast<uint8_t>(255 - b[i]);
  }
  const std::string file = webp_animation(6, 8, {webp_file(a, 6, 8, true), webp_file(b, 6, 8, true)});
  const Pixels p = webp(file);
  ASSERT_EQ(p.size.frames, 2);
  ASSERT_EQ(p.size.channels, 4);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), p.data.begin()));
  EXPECT_TRUE(std::equal(b.begin(), b.end(), p.data.begin() + static_cast<std::ptrdiff_t>(a.size())));
  const auto last = p.at(2, 2, 1);
  EXPECT_EQ(webp(file, {.channels = 3}).at(2, 2, 1), (std::vector{last[0], last[1], last[2]}));
  EXPECT_EQ(webp(file, {.first_frame_only = true}).size.frames, 1);
  EXPECT_THAT(message([&] { webp(file.substr(0, file.size() - 40)); }), ::testing::HasSubstr("WebP: "));
}

TEST(Webp, DamageIsNamed) {
  const auto rgb = smooth(21, 34, 3);
  const std::string file = webp_file(rgb, 34, 21, false);
  for (size_t n = 0; n < file.size() - 2; n += 3) {
    EXPECT_THAT(message([&] { webp(file.substr(0, n)); }), ::testing::HasSubstr("WebP: ")) << n;
  }
  EXPECT_THAT(message([&] { webp(file, {.max_pixels = 100}); }), ::testing::HasSubstr("100 pixels allowed"));
}

}  // namespace
}  // namespace runnel::io
