#include "runnel/keras/progbar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"

namespace runnel::keras::utils {
namespace {

// A bar whose clock the test sets and whose text it keeps.
struct FakeScreen {
  double now = 100;
  std::string text;
  ProgbarOptions options(bool terminal, int verbose = 1) {
    ProgbarOptions o;
    o.verbose = verbose;
    o.terminal = terminal;
    o.clock = [this] { return now; };
    o.write = [this](const std::string& more) { text += more; };
    return o;
  }
  std::string take() { return std::exchange(text, ""); }
};

TEST(Progbar, KerasText) {
  FakeScreen screen;
  Progbar bar(1875, screen.options(true));
  screen.now = 100.068;
  bar.update(1, {{"loss", 2.3026}});  // 0.068 s a step: 1874 more take 127 s
  EXPECT_EQ(screen.take(), "\r   1/1875 [..............................] - ETA: 2:07 - loss: 2.3026");
  screen.now = 100.568;  // the first step no longer counts: 468 steps in 0.5 s
  bar.update(469, {{"loss", 0.5}});
  const double loss = (2.3026 + 0.5 * 468) / 469;
  char mean[16];
  std::snprintf(mean, sizeof mean, "%.4f", loss);
  EXPECT_EQ(screen.take(),
            std::string("\r 469/1875 [======>.......................] - ETA: 1s - loss: ") + mean + "  ");
  screen.now = 102.1;
  bar.update(1875, {{"loss", 0.25}, {"accuracy", 0.914}});
  std::snprintf(mean, sizeof mean, "%.4f", (2.3026 + 0.5 * 468 + 0.25 * 1406) / 1875);
  EXPECT_EQ(screen.take(), std::string("\r1875/1875 [==============================] - 2s 1ms/step - loss: ") + mean +
                               " - accuracy: 0.9140\n");
}

TEST(Progbar, StatefulMetricsAreShownAsGiven) {
  FakeScreen screen;
  ProgbarOptions options = screen.options(true);
  options.stateful_metrics = {"accuracy"};
  Progbar bar(4, options);
  screen.now += 1;
  bar.update(1, {{"accuracy", 0.5}, {"loss", 4}});
  screen.take();
  screen.now += 1;
  bar.update(2, {{"accuracy", 0.75}, {"loss", 2}});
  EXPECT_EQ(screen.take(), "\r2/4 [==============>...............] - ETA: 2s - accuracy: 0.7500 - loss: 3.0000");
}

TEST(Progbar, ShorterLinesCoverLongerOnes) {
  FakeScreen screen;
  Progbar bar(10, screen.options(true));
  screen.now += 1000;
  bar.update(1);
  EXPECT_EQ(screen.take(), "\r 1/10 [==>...........................] - ETA: 2:30:00");
  screen.now += 2;
  bar.update(5);
  EXPECT_EQ(screen.take(), "\r 5/10 [==============>...............] - ETA: 2s     ");
}

TEST(Progbar, DrawsAtMostEveryInterval) {
  FakeScreen screen;
  Progbar bar(100, screen.options(true));
  screen.now += 0.01;
  bar.update(1);
  EXPECT_FALSE(screen.take().empty());  // the first one at once
  screen.now += 0.049;
  bar.update(2);
  EXPECT_EQ(screen.take(), "");
  screen.now += 0.002;
  bar.add(1);
  EXPECT_THAT(screen.take(), ::testing::StartsWith("\r  3/100 ["));
}

TEST(Progbar, PlainLinesWithoutATerminal) {
  FakeScreen screen;
  Progbar bar(2, screen.options(false));
  screen.now += 3;
  bar.update(1, {{"loss", 1}});
  EXPECT_EQ(screen.take(), "");
  screen.now += 0.0004;
  bar.update(2, {{"loss", 2}});
  EXPECT_EQ(screen.take(), "2/2 [==============================] - 3s 400us/step - loss: 1.5000\n");
}

TEST(Progbar, VerboseTwoIsOneLine) {
  FakeScreen screen;
  Progbar bar(1875, screen.options(true, 2));
  screen.now += 1;
  bar.update(1000, {{"loss", 0.2971}});
  EXPECT_EQ(screen.take(), "");
  screen.now += 1;
  bar.update(1875, {{"loss", 0.2971}, {"val_loss", 0.0005}});
  EXPECT_EQ(screen.take(), "1875/1875 - 2s - loss: 0.2971 - val_loss: 5.0000e-04 - 2s/epoch - 1ms/step\n");
}

TEST(Progbar, AnUnknownNumberOfSteps) {
  FakeScreen screen;
  Progbar bar(std::nullopt, screen.options(true));
  screen.now += 2;
  bar.update(1, {{"loss", 1}});
  EXPECT_EQ(screen.take(), "\r      1/Unknown - 2s 2s/step - loss: 1.0000");
  screen.now += 0.06;
  bar.update(2, {{"loss", 1}});
  EXPECT_EQ(screen.take(), "\r      2/Unknown - 2s 60ms/step - loss: 1.0000");
  bar.update(2, {{"loss", 4}}, true);  // a repeated step counts as one
  EXPECT_EQ(screen.take(), "\r      2/Unknown - 2s 60ms/step - loss: 2.0000\n");
}

TEST(Progbar, SilenceNansAndErrors) {
  FakeScreen screen;
  Progbar silent(2, screen.options(true, 0));
  silent.update(2, {{"loss", 1}});
  EXPECT_EQ(screen.take(), "");
  Progbar bar(1, screen.options(false));
  bar.update(1, {{"a", -std::nan("")}, {"b", -INFINITY}, {"c", -0.25}});
  EXPECT_THAT(screen.take(), ::testing::EndsWith(" - a: nan - b: -inf - c: -0.2500\n"));
  test::expect_error([] { Progbar(0); }, Code::invalid_argument, "the target is 0");
}

}  // namespace
}  // namespace runnel::keras::utils
