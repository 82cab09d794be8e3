// Handles that end while blocks are traced, and what blocks refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

TEST(TracedBlockErrors, AnArmThatEndsWhatTheOtherChanges) {
  auto grows = function([](const Tensor& c, const Tensor& x) {
    std::vector<Tensor> v{x};
    IF(c) { v[0] = x * 2; }
    else {
      v.push_back(x);
    }
    return v[0];
  });
  expect_error([&] { grows(Tensor(true), Tensor(3.f)); }, Code::failed_precondition,
               "[IF] one arm changes a tensor that the other moves or destroys");
  expect_error([&] { grows(Tensor(true), Tensor(3.f)); }, Code::failed_precondition, "traced_block_errors_test.cpp:");

  auto resets = function([](const Tensor& c, const Tensor& x) {
    std::optional<Tensor> v{x};
    IF(c) { *v = x * 2; }
    else {
      // An end inside a block of this arm counts too.
      IF(x > 0) { v.reset(); }
    }
    return x;
  });
  expect_error([&] { resets(Tensor(true), Tensor(3.f)); }, Code::failed_precondition, "moves or destroys");
}

TEST(TracedBlockErrors, AnArmMayEndWhatHadNoValueBefore) {
  auto f = function([](const Tensor& c, const Tensor& x) {
    auto cache = std::make_unique<Tensor>();
    Tensor y = x;
    IF(c) {
      *cache = x * 2;
      y = *cache;
    }
    else {
      cache.reset();
    }
    return y;
  });
  EXPECT_EQ(f(Tensor(true), Tensor(3.f)).item<float>(), 6);
  EXPECT_EQ(f(Tensor(false), Tensor(3.f)).item<float>(), 3);
}

TEST(TracedBlockErrors, ALoopThatEndsWhatItChanges) {
  auto f = function([](const Tensor& n, const Tensor& x) {
    std::vector<Tensor> v{x};
    v.reserve(2);  // the first pass over the body fits in
    Tensor i(0);
    WHILE(i < n) {
      v[0] = v[0] + 1;
      v.push_back(x);
      i = i + 1;
    }
    return v[0];
  });
  expect_error([&] { f(Tensor(3), Tensor(3.f)); }, Code::failed_precondition,
               "[WHILE] moves or destroys a tensor that it changes");
  EXPECT_EQ((Tensor(1) + 1).item<int32_t>(), 2);
}

// A function that is first traced inside a block is no part of it, but what it ends is gone for the block as well.
TEST(TracedBlockErrors, EndsInsideAFunctionThatABlockCalls) {
  auto f = function([](const Tensor& c, const Tensor& x) {
    auto kept = std::make_unique<Tensor>(x);
    auto drops = function([&](const Tensor& t) {
      kept.reset();
      return t + 1;
    });
    Tensor y = x;
    IF(c) {
      *kept = x * 2;
      y = drops(y);
    }
    return y;
  });
  EXPECT_EQ(f(Tensor(true), Tensor(3.f)).item<float>(), 4);
  EXPECT_EQ(f(Tensor(false), Tensor(3.f)).item<float>(), 3);
}

class CountingHandleLog : public HandleLog {
 public:
  void assigned(Tensor*) override { ++assignments; }
  void destroyed(Tensor* handle) override { ended.push_back(handle); }
  int assignments = 0;
  std::vector<Tensor*> ended;
};

TEST(TracedBlockErrors, UnloggedHandlesAreStillSeenToEnd) {
  CountingHandleLog log;
  auto handle = std::make_unique<Tensor>(1);
  Tensor* const address = handle.get();
  {
    const HandleLogScope scope(&log);
    const UnloggedHandles unlogged;
    const UnloggedHandles inside;
    *handle = Tensor(2);
    handle.reset();
  }
  EXPECT_EQ(log.assignments, 0);
  EXPECT_THAT(log.ended, ::testing::Contains(address));
}

TEST(TracedBlockErrors, AScalarHasNoElements) {
  const auto sum = [](const Tensor& x) {
    Tensor s(0.f);
    for (auto v : x) s = s + v;
    return s;
  };
  for (const char* text : {"[for] a scalar has no elements to go through", "traced_block_errors_test.cpp:"}) {
    expect_error([&] { sum(Tensor(3.f)); }, Code::invalid_argument, text);
    expect_error([&] { function(sum)(Tensor(3.f)); }, Code::invalid_argument, text);
  }
  EXPECT_EQ(sum(Tensor{1.f, 2.f}).item<float>(), 3);
}

}  // namespace
}  // namespace runnel
