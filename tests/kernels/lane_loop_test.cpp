#include "runnel/kernels/cpu/lane_loop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runnel/base/cpu.h"

// The steps one by one, with every kind of float, are checked by the suite over all ops (tests/suite/lanes_test.cpp).
namespace runnel::cpu {
namespace {

using Input = LaneLoop::Input;

std::vector<float> ramp(size_t n, float from, float step) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = from + static_cast<float>(i) * step;
  return x;
}

// Compiled where the machine can; elsewhere nothing is to be had.
std::unique_ptr<LaneLoop> compiled(const LaneCode& code, const std::vector<Input>& inputs, std::vector<int> results) {
  auto loop = LaneLoop::compile(code, inputs, results);
  EXPECT_EQ(loop != nullptr, has_avx2());
  return loop;
}

TEST(LaneLoop, EveryLengthAndNothingBeyondIt) {
  LaneCode code;
  const Lane x = code.input(0), y = code.input(1), s = code.input(2);
  const Lane z = choose(x > y && x != 3, (x + y) * s, 1 - x / 4);
  const auto loop = compiled(code, {Input::array, Input::array, Input::scalar}, {z.step_in(code)});
  if (!loop) return;
  for (size_t n = 0; n < 70; ++n) {
    const std::vector<float> a = ramp(n, -3, 0.5f), b = ramp(n, 5, -0.25f);
    std::vector<float> out(n + 1, 99);
    const float scale = 1.5f;
    const float* in[] = {a.data(), b.data(), &scale};
    float* to[] = {out.data()};
    loop->run(in, to, static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(out[i], a[i] > b[i] && a[i] != 3 ? (a[i] + b[i]) * scale : 1 - a[i] / 4) << i << " of " << n;
    }
    EXPECT_EQ(out[n], 99) << n;
  }
}

TEST(LaneLoop, AsManyArraysAsThereAreRegistersForThem) {
  for (int arrays = 2; arrays <= 12; ++arrays) {
    LaneCode code;
    const int inputs = arrays - 2;
    Lane sum = 1;
    for (int i = 0; i < inputs; ++i) sum = sum * (i % 2 ? -2 : 3) + code.input(i);
    if (inputs == 0) sum = choose(code.input(0) == code.input(0), Lane(4), Lane(5));
    const Lane twice = sum + sum;
    const std::vector<Input> kinds(static_cast<size_t>(std::max(1, inputs)), inputs ? Input::array : Input::scalar);
    const auto loop = LaneLoop::compile(code, kinds, {sum.step_in(code), twice.step_in(code)});
    EXPECT_EQ(loop != nullptr, has_avx2() && arrays <= 9) << arrays;
    if (!loop) continue;
    constexpr size_t kCount = 19;
    std::vector<std::vector<float>> x;
    std::vector<const float*> in;
    for (size_t i = 0; i < kinds.size(); ++i) x.push_back(ramp(kCount, static_cast<float>(i), 0.5f));
    for (const auto& v : x) in.push_back(v.data());
    std::vector<float> first(kCount), second(kCount);
    float* to[] = {first.data(), second.data()};
    loop->run(in.data(), to, kCount);
    for (size_t k = 0; k < kCount; ++k) {
      float want = 1;
      for (int i = 0; i < inputs; ++i) want = want * (i % 2 ? -2.f : 3.f) + x[static_cast<size_t>(i)][k];
      if (inputs == 0) want = 4;
      EXPECT_EQ(first[k], want) << arrays;
      EXPECT_EQ(second[k], 2 * want) << arrays;
    }
  }
}

// `live` values at a time.
Lane many_values(LaneCode& code, int live) {
  std::vector<Lane> values;
  for (int i = 0; i < live; ++i) values.push_back(code.input(0) + i);
  Lane sum = values[0];
  for (int i = 1; i < live; ++i) sum = sum * 2 + values[static_cast<size_t>(i)];
  return sum;
}

TEST(LaneLoop, AsManyValuesAsThereAreRegisters) {
  for (const int live : {2, 15, 16, 17, 40}) {
    LaneCode code;
    const int result = many_values(code, live).step_in(code);
    const auto loop = LaneLoop::compile(code, {Input::array}, {result});
    EXPECT_EQ(loop != nullptr, has_avx2() && live <= 16) << live;
    if (!loop) continue;
    const std::vector<float> x = ramp(9, 1, 1);
    std::vector<float> y(9);
    const float* in = x.data();
    float* to = y.data();
    loop->run(&in, &to, 9);
    for (size_t k = 0; k < x.size(); ++k) {
      float want = x[k];
      for (int i = 1; i < live; ++i) want = want * 2 + (x[k] + static_cast<float>(i));
      EXPECT_EQ(y[k], want) << live;
    }
  }
}

TEST(LaneLoop, WritesOverWhatItHasRead) {
  LaneCode code;
  const Lane x = code.input(0), y = code.input(1);
  const Lane sum = x + y, product = sum * y;
  const auto loop = compiled(code, {Input::array, Input::array}, {sum.step_in(code), product.step_in(code)});
  if (!loop) return;
  std::vector<float> a = ramp(27, 1, 1), b = ramp(27, -4, 0.5f);
  const std::vector<float> old_a = a, old_b = b;
  const float* in[] = {a.data(), b.data()};
  float* to[] = {a.data(), b.data()};
  loop->run(in, to, 27);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i], old_a[i] + old_b[i]);
    EXPECT_EQ(b[i], (old_a[i] + old_b[i]) * old_b[i]);
  }
}

TEST(LaneLoop, AnInputOrAConstantMayBeAResult) {
  LaneCode code;
  const Lane x = code.input(0);
  const auto loop = compiled(code, {Input::array}, {x.step_in(code), Lane(2.5f).step_in(code)});
  if (!loop) return;
  const std::vector<float> a = ramp(11, 1, 1);
  std::vector<float> copy(11), constant(11);
  const float* in = a.data();
  float* to[] = {copy.data(), constant.data()};
  loop->run(&in, to, 11);
  EXPECT_EQ(copy, a);
  EXPECT_EQ(constant, std::vector<float>(11, 2.5f));
}

}  // namespace
}  // namespace runnel::cpu
