#include "runnel/kernels/cpu/vmath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runnel/base/cpu.h"
#include "runnel/kernels/cpu/activations.h"
#include "runnel/kernels/cpu/loops.h"

namespace runnel::cpu {
namespace {

struct Function {
  const char* name;
  void (*array)(const float*, float*, int64_t);
  double (*exact)(double);
  double max_ulp;
};

const Function kFunctions[] = {
    {"exp", vexp, [](double x) { return std::exp(x); }, 2},
    {"expm1", vexpm1, [](double x) { return std::expm1(x); }, 2},
    {"log", vlog, [](double x) { return std::log(x); }, 2},
    {"log1p", vlog1p, [](double x) { return std::log1p(x); }, 2},
    {"tanh", vtanh, [](double x) { return std::tanh(x); }, 3},
    {"sigmoid", vsigmoid, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, 3},
    {"sin", vsin, [](double x) { return std::sin(x); }, 2},
    {"cos", vcos, [](double x) { return std::cos(x); }, 2},
    {"tan", vtan, [](double x) { return std::tan(x); }, 3},
    {"atan", vatan, [](double x) { return std::atan(x); }, 2},
    {"erf", verf, [](double x) { return std::erf(x); }, 2},
    {"sqrt", vsqrt, [](double x) { return std::sqrt(x); }, 0.5},
    {"rsqrt", vrsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5},
};

// The distance in units of the last place of a float at the exact value.
double ulp_error(float got, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded)) return got == rounded ? 0 : INFINITY;
  if (std::isnan(got) || std::isinf(got)) return INFINITY;
  const int exponent = std::max(std::ilogb(rounded == 0 ? 1e-45f : rounded), -126);
  return std::abs(got - exact) / std::ldexp(1.0, exponent - 23);
}

class Vmath : public testing::TestWithParam<Function> {};

// Every 1021st bit pattern (an odd step meets all mantissas), or every one with RUNNEL_EXHAUSTIVE set.
TEST_P(Vmath, WithinUlpOverAllFloats) {
  const Function& f = GetParam();
  const uint64_t step = std::getenv("RUNNEL_EXHAUSTIVE") ? 1 : 1021;
  constexpr int kBlock = 1001;
  std::vector<float> x(kBlock), y(kBlock);
  double worst = 0;
  float worst_at = 0;
  for (uint64_t start = 0; start < (uint64_t{1} << 32); start += step * kBlock) {
    for (int i = 0; i < kBlock; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(start + step * i));
    f.array(x.data(), y.data(), kBlock);
    for (int i = 0; i < kBlock; ++i) {
      const double error = ulp_error(y[i], f.exact(x[i]));
      if (error > worst) {
        worst = error;
        worst_at = x[i];
      }
    }
  }
  RecordProperty("max_ulp", std::to_string(worst));
  std::printf("%s: %.3f ulp at %a\n", f.name, worst, worst_at);
  EXPECT_LE(worst, f.max_ulp) << f.name << "(" << worst_at << ")";
}

TEST_P(Vmath, SpecialValuesAsTheStandardLibrary) {
  const Function& f = GetParam();
  const float inf = std::numeric_limits<float>::infinity();
  for (float x : {0.0f, -0.0f, inf, -inf, NAN, 1.0f, -1.0f, 1e-45f, -1e-45f, 1e38f, -1e38f, -1.5f}) {
    float y;
    f.array(&x, &y, 1);
    EXPECT_LE(ulp_error(y, f.exact(x)), f.max_ulp) << f.name << "(" << x << ") = " << y;
    if (x == 0 && f.exact(x) == 0) {
      EXPECT_EQ(std::signbit(y), std::signbit(f.exact(x))) << f.name;
    }
  }
}

TEST_P(Vmath, PlaceDoesNotChangeBits) {
  const Function& f = GetParam();
  std::vector<float> x(64), y(64);
  for (int i = 0; i < 64; ++i) x[i] = std::ldexp(1.0f + i * 0.0151f, i % 24 - 14) * (i % 3 == 0 ? -1 : 1);
  x[17] = 1e9f;
  f.array(x.data(), y.data(), 64);
  for (int begin = 0; begin < 16; ++begin) {
    for (int n = 1; n <= 19; ++n) {
      std::vector<float> z(n + 1, 7.0f);
      f.array(x.data() + begin, z.data(), n);
      for (int i = 0; i < n; ++i) {
        ASSERT_TRUE(std::bit_cast<uint32_t>(z[i]) == std::bit_cast<uint32_t>(y[begin + i]) || std::isnan(z[i]));
      }
      ASSERT_EQ(z[n], 7.0f) << f.name << " wrote past the end";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Vmath, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

// Run by the test below in a process of its own for each instruction set, which is chosen once.
TEST(VmathBits, DISABLED_PrintsSumsOfAllBits) {
  std::vector<float> x((uint64_t{1} << 32) / 1021), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(1021 * i));
  std::vector<std::pair<const char*, void (*)(const float*, float*, int64_t)>> all = {
      {"elu", velu}, {"selu", vselu}, {"softplus", vsoftplus}};
  for (const Function& f : kFunctions) all.emplace_back(f.name, f.array);
  for (const auto& [name, array] : all) {
    array(x.data(), y.data(), static_cast<int64_t>(x.size()));
    uint64_t sum = 0;
    for (float v : y) sum = sum * 31 + (std::isnan(v) ? 0 : std::bit_cast<uint32_t>(v));
    std::printf("bits of %s: %016llx\n", name, static_cast<unsigned long long>(sum));
  }
  std::vector<float> other(x.rbegin(), x.rend());
  vatan2(x.data(), other.data(), y.data(), static_cast<int64_t>(x.size()));
  uint64_t sum = 0;
  for (float v : y) sum = sum * 31 + (std::isnan(v) ? 0 : std::bit_cast<uint32_t>(v));
  std::printf("bits of atan2: %016llx\n", static_cast<unsigned long long>(sum));
}

TEST(Vmath, Atan2IsTheAngleInEveryQuadrant) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f, 1e-45f, 1e-38f, 1e-20f, 0.3f, 1.0f, std::nextafter(1.0f, 2.0f), 3e38f, inf, NAN};
  for (int i = 0; i < 300; ++i) values.push_back(std::ldexp(1.0f + static_cast<float>(i) / 300, i % 60 - 30));
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  std::vector<float> x(values.size()), angle(values.size());
  for (float y : values) {
    std::fill(x.begin(), x.end(), y);
    vatan2(x.data(), values.data(), angle.data(), static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      const double exact = std::atan2(static_cast<double>(y), static_cast<double>(values[i]));
      ASSERT_LE(ulp_error(angle[i], exact), 1.5) << "atan2(" << y << ", " << values[i] << ") = " << angle[i];
      if (!std::isnan(exact)) {
        ASSERT_EQ(std::signbit(angle[i]), std::signbit(exact)) << y << ", " << values[i];
      }
    }
  }
}

std::string sums_of_bits(const std::string& isa) {
  const std::string command = "RUNNEL_ISA=" + isa + " '" + std::filesystem::read_symlink("/proc/self/exe").string() +
                              "' --gtest_also_run_disabled_tests --gtest_filter=VmathBits.DISABLED_*";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string sums;
  char line[256];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe.get()) != nullptr) {
    if (std::string_view(line).starts_with("bits of")) sums += line;
  }
  return sums;
}

TEST(VmathBits, Avx512GivesThoseOfAvx2) {
  if (!detect_cpu(nullptr).avx512) GTEST_SKIP() << "this machine has no AVX-512";
  const std::string avx2 = sums_of_bits("avx2");
  EXPECT_EQ(std::count(avx2.begin(), avx2.end(), '\n'), 17);
  EXPECT_EQ(sums_of_bits("avx512"), avx2);
}

TEST(Vmath, FunctorsServeEveryFloatingType) {
  const int64_t n = 50000;
  std::vector<double> d(n), dy(n);
  std::vector<float> s(n), sy(n), want(n);
  std::vector<Half> h(n), hy(n);
  for (int64_t i = 0; i < n; ++i) {
    s[i] = -5 + 1e-4f * i;
    d[i] = s[i];
    h[i] = Half(s[i]);
  }
  unary_loop<Tanh>(d.data(), dy.data(), n);
  unary_loop<Tanh>(s.data(), sy.data(), n);
  unary_loop<Tanh>(h.data(), hy.data(), n);
  vtanh(s.data(), want.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(dy[i], std::tanh(d[i]));
    ASSERT_EQ(sy[i], want[i]);
    ASSERT_NEAR(hy[i], std::tanh(float(h[i])), 1e-3);
  }
}

}  // namespace
}  // namespace runnel::cpu
