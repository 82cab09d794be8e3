// One tape and several threads: its own records, one at a time asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runnel/autodiff/tape.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> values_of(const Gradient& g) { return g.value().to_vector<float>(); }

// A gradient that another thread takes, as long as this lives: it has begun and waits to be let go.
class GradientElsewhere {
 public:
  GradientElsewhere(GradientTape& tape, const Tensor& x)
      : y_(custom_gradient(
            [this](const std::vector<Tensor>& in) {
              return CustomGradient{in[0] * 2, [this](const Tensor& dy) {
                                      begun_ = true;
                                      while (!let_go_) std::this_thread::yield();
                                      return Gradients{dy * 2};
                                    }};
            },
            {x})),
        thread_([this, &tape, x] { result_ = tape.gradient(y_, x); }) {
    while (!begun_) std::this_thread::yield();
  }
  ~GradientElsewhere() { result(); }
  Gradient result() {
    let_go_ = true;
    if (thread_.joinable()) thread_.join();
    return result_;
  }
  const Tensor& target() const { return y_; }

 private:
  std::atomic<bool> begun_ = false, let_go_ = false;
  Gradient result_;
  Tensor y_;
  std::thread thread_;
};

TEST(TapeThreads, OpsGoOnWhileAnotherThreadTakesTheGradient) {
  const Variable v(3.f);
  for (int k = 0; k < 30; ++k) {
    GradientTape tape;
    Tensor y = v * v;
    for (int i = 0; i < 20; ++i) y = y + v;
    std::atomic<bool> done = false;
    std::vector<float> dy;
    std::thread other([&] {
      dy = values_of(tape.gradient(y, v));
      done = true;
    });
    while (!done) EXPECT_EQ((v * v).item<float>(), 9);
    other.join();
    EXPECT_THAT(dy, ElementsAre(26));
    EXPECT_EQ((v * v).item<float>(), 9);
  }
}

TEST(TapeThreads, ATapeThatForgetsRecordsNothingMeanwhile) {
  const Tensor x{2.f};
  GradientTape tape;
  tape.watch(x);
  GradientElsewhere other(tape, x);
  const Tensor unseen = x * x;
  expect_error([&] { tape.gradient(unseen, x); }, Code::failed_precondition,
               "gradient() while another thread takes a gradient of the same tape: one thread at a time");
  EXPECT_THAT(values_of(other.result()), ElementsAre(2));
  expect_error([&] { tape.gradient(unseen, x); }, Code::failed_precondition, "was asked twice");
}

TEST(TapeThreads, APersistentTapeMissesNoOp) {
  const Tensor x{2.f};
  const Variable v(2.f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  {
    GradientElsewhere other(tape, x);
    const char* const lost = "an op that a persistent tape records runs while another thread takes a gradient";
    expect_error([&] { x* x; }, Code::failed_precondition, lost);
    expect_error([&] { v + 1.f; }, Code::failed_precondition, lost);  // it would watch the variable
    EXPECT_EQ((Tensor(1.f) + 1.f).item<float>(), 2);                  // it does not follow that
    {
      const auto pause = tape.stop_recording();
      EXPECT_EQ((x * x).item<float>(), 4);
    }
    const char* const turn = "while another thread takes a gradient of the same tape";
    expect_error([&] { tape.jacobian(other.target(), x); }, Code::failed_precondition, turn);
    expect_error([&] { tape.watch(Tensor(1.f)); }, Code::failed_precondition, turn);
    expect_error([&] { tape.reset(); }, Code::failed_precondition, turn);
    EXPECT_THAT(values_of(other.result()), ElementsAre(2));
  }
  EXPECT_THAT(values_of(tape.gradient(x * x * x, x)), ElementsAre(12));
}

TEST(TapeThreads, ManyAsk) {
  const Tensor x{2.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x * x;
  std::atomic<int> answers = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        try {
          EXPECT_THAT(values_of(tape.gradient(y, x)), ElementsAre(12));
          ++answers;
        } catch (const Error& e) {
          EXPECT_THAT(e.what(), HasSubstr("one thread at a time"));
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_GT(answers, 0);
}

TEST(TapeThreads, WatchesOnAnotherThreadWhileItsOwnRecords) {
  const Variable v(3.f);
  const std::vector<Tensor> more(200, Tensor(1.f));
  GradientTape tape;
  Tensor y = v * v;
  std::thread other([&] {
    for (const Tensor& t : more) tape.watch(t + 0.f);
  });
  for (int i = 0; i < 200; ++i) y = y + v;
  other.join();
  EXPECT_THAT(values_of(tape.gradient(y, v)), ElementsAre(206));
}

TEST(TapeThreads, AsksAgainInsideItsOwnGradient) {
  const Tensor x{3.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor square = x * x;
  const Tensor y = custom_gradient(
      [&](const std::vector<Tensor>& in) {
        return CustomGradient{in[0] * 1,
                              [&](const Tensor& dy) { return Gradients{dy * tape.gradient(square, x).value()}; }};
      },
      {x});
  EXPECT_THAT(values_of(tape.gradient(y, x)), ElementsAre(6));
  std::thread([&] { EXPECT_THAT(values_of(tape.gradient(y, x)), ElementsAre(6)); }).join();
}

TEST(TapeThreads, GoesOnWhenAPauseEndsOnAnotherThread) {
  const Tensor x{3.f};
  GradientTape tape;
  tape.watch(x);
  auto pause = std::make_unique<GradientTape::Pause>(tape);
  const Tensor unseen = x * x;
  std::thread([&] { pause.reset(); }).join();
  EXPECT_THAT(values_of(tape.gradient(x * x, x)), ElementsAre(6));
}

TEST(TapeThreads, GoesOnWhenAnotherThreadResetsIt) {
  const Tensor x{3.f};
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(values_of(tape.gradient(x * x, x)), ElementsAre(6));
  const Tensor unseen = x * x;
  std::thread([&] { tape.reset(); }).join();
  tape.watch(x);
  EXPECT_THAT(values_of(tape.gradient(x * x + unseen, x)), ElementsAre(6));
}

TEST(TapeThreads, GoesOnWhenAPauseEndsWhereTapesAreHidden) {
  const Tensor x{3.f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  auto pause = std::make_unique<GradientTape::Pause>(tape);
  Tensor unseen;
  {
    const Unrecorded hidden;
    pause.reset();
    unseen = x * x;
  }
  EXPECT_FALSE(tape.gradient(unseen, x).defined());
  EXPECT_THAT(values_of(tape.gradient(x * x, x)), ElementsAre(6));
}

TEST(TapeThreads, NobodyIsToldOfOpsWithoutTapes) {
  EXPECT_EQ(current_recorder(), nullptr);
  {
    GradientTape tape;
    const auto pause = tape.stop_recording();
    EXPECT_NE(current_recorder(), nullptr);  // it may go on
    const Unrecorded hidden;
    EXPECT_EQ(current_recorder(), nullptr);
  }
  EXPECT_EQ(current_recorder(), nullptr);
}

}  // namespace
}  // namespace runnel
