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
#include "runnel/kernels/cpu/special.h"

namespace runnel::cpu {
namespace {

struct Function {
  const char* name;
  void (*array)(const float*, float*, int64_t);
  double (*exact)(double);
  double max_ulp;
};

// Newton's steps on erf and erfc in long double, from what double precision finds.
double exact_erfinv(double given) {
  const long double x = std::abs(static_cast<long double>(given));
  if (!(x < 1)) return x == 1 ? std::copysign(INFINITY, given) : NAN;
  long double y = erf_inverse(static_cast<double>(x));
  for (int step = 0; step < 2; ++step) {
    const long double miss = x > 0.5L ? std::erfc(y) - (1 - x) : x - std::erf(y);
    y += miss * std::exp(y * y) / (2 / std::sqrt(3.14159265358979323846264338327950288L));
  }
  return static_cast<double>(std::copysign(y, static_cast<long double>(given)));
}

double exact_lgamma(double x) {
  int sign = 0;
  return static_cast<double>(::lgammal_r(static_cast<long double>(x), &sign));
}

// The recurrence up to 40, then the asymptotic series; below 0 by reflection.
double exact_digamma(double given) {
  const long double pi = 3.14159265358979323846264338327950288L, x = given;
  if (std::isnan(x) || (x <= 0 && x == std::floor(x))) return NAN;
  if (std::isinf(x)) return given;
  long double y = 0, z = x;
  if (x < 0) {
    y = -pi / std::tan(pi * (x - std::nearbyint(x)));
    z = 1 - x;
  }
  for (; z < 40; z += 1) y -= 1 / z;
  const long double s = 1 / (z * z);
  return static_cast<double>(
      y + std::log(z) - 0.5L / z -
      s * (1 / 12.0L - s * (1 / 120.0L - s * (1 / 252.0L - s * (1 / 240.0L - s * (1 / 132.0L - s * 691 / 32760.0L))))));
}

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
    {"asin", vasin, [](double x) { return std::asin(x); }, 1.5},
    {"acos", vacos, [](double x) { return std::acos(x); }, 1.5},
    {"sinh", vsinh, [](double x) { return std::sinh(x); }, 2},
    {"cosh", vcosh, [](double x) { return std::cosh(x); }, 2},
    {"asinh", vasinh, [](double x) { return std::asinh(x); }, 2},
    {"acosh", vacosh, [](double x) { return std::acosh(x); }, 2},
    {"atanh", vatanh, [](double x) { return std::atanh(x); }, 1.5},
    {"erfc", verfc, [](double x) { return std::erfc(x); }, 1},
    {"erfinv", verfinv, exact_erfinv, 2},
    {"lgamma", vlgamma, exact_lgamma, 1},
    {"digamma", vdigamma, exact_digamma, 1},
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
  const std::pair<const char*, void (*)(const float*, const float*, float*, int64_t)> of_two[] = {
      {"atan2", vatan2}, {"xlogy", vxlogy}, {"xlog1py", vxlog1py}, {"pow", vpow}};
  for (const auto& [name, array] : of_two) {
    array(x.data(), other.data(), y.data(), static_cast<int64_t>(x.size()));
    uint64_t sum = 0;
    for (float v : y) sum = sum * 31 + (std::isnan(v) ? 0 : std::bit_cast<uint32_t>(v));
    std::printf("bits of %s: %016llx\n", name, static_cast<unsigned long long>(sum));
  }
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

// Where a function of many terms is nearly 0, and where one formula takes over from another.
TEST(Vmath, SpecialFunctionsNearTheirZerosAndSeams) {
  const auto worst = [](const Function& f, float middle) {
    std::vector<float> x, y;
    float low = middle, high = middle;
    for (int i = 0; i < 500; ++i) {
      x.insert(x.end(), {low, high});
      low = std::nextafter(low, -INFINITY);
      high = std::nextafter(high, INFINITY);
    }
    y.resize(x.size());
    f.array(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double most = 0;
    for (size_t i = 0; i < x.size(); ++i) most = std::max(most, ulp_error(y[i], f.exact(x[i])));
    return most;
  };
  const std::pair<std::string_view, std::vector<float>> places[] = {
      {"lgamma", {0.9f, 1, 2, 2.1f, 8, 0, -2, -2.4570247f, -2.7476826f, -3.1435808f, -3.9552942f, -7.999f}},
      {"digamma", {1.4616321f, 7, 8, 0, -1, -0.5040830f, -1.5734984f, -2.6107208f, -9.7026725f}},
      {"erfinv", {0.9966252f, -0.9966252f, 0, 1, -1}},
      {"erfc", {0, 0.5f, 9.1f, 10.06f}},
      {"asin", {0.5625f, 1}},
      {"acos", {0.5625f, -0.5625f, 1, -1, 0}},
      {"asinh", {0.53f, 0x1p60f}},
      {"acosh", {1, 0x1p60f}},
      {"atanh", {0.5f, 1}},
      {"sinh", {1, 88.72f, 89.4159f}},
      {"cosh", {0, 88.72f, 89.4159f}}};
  for (const auto& [name, middles] : places) {
    for (const Function& f : kFunctions) {
      if (name != f.name) continue;
      for (const float middle : middles) EXPECT_LE(worst(f, middle), f.max_ulp) << name << " near " << middle;
    }
  }
}

TEST(Vmath, PowersOfAllKinds) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0.0f,  -0.0f, 1,    -1,    inf,     -inf,     NAN, 2,      -2,  0.5f,
                                      -0.5f, 3,     -3.f, 1e38f, -1.5e7f, 16777215, 3e9, 1e-38f, -7.f};
  for (const float x : special) {
    for (const float y : special) {
      float z;
      vpow(&x, &y, &z, 1);
      const auto exact = static_cast<float>(std::pow(static_cast<long double>(x), static_cast<long double>(y)));
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(z)) << x << "^" << y;
      } else {
        EXPECT_LE(ulp_error(z, exact), 1) << x << "^" << y << " = " << z;
        EXPECT_EQ(std::signbit(z), std::signbit(exact)) << x << "^" << y;
      }
    }
  }
  constexpr int kMany = 200000;
  std::vector<float> x(kMany), y(kMany), z(kMany);
  uint32_t state = 7;
  const auto draw = [&state](int64_t n) {
    return static_cast<int64_t>((state = state * 1664525u + 1013904223u) >> 8) % n;
  };
  for (size_t i = 0; i < kMany; ++i) {
    switch (i % 4) {
      case 0:  // all bits
        x[i] = std::bit_cast<float>(static_cast<uint32_t>(draw(1 << 16) << 16 | draw(1 << 16)));
        y[i] = std::bit_cast<float>(static_cast<uint32_t>(draw(1 << 16) << 16 | draw(1 << 16)));
        break;
      case 1:  // near 1, to large powers
        x[i] = 1 + static_cast<float>(draw(20001) - 10000) * 1e-6f;
        y[i] = static_cast<float>(draw(20001) - 10000) * 100;
        break;
      case 2:
        x[i] = std::exp(static_cast<float>(draw(20001) - 10000) / 500);
        y[i] = static_cast<float>(draw(20001) - 10000) / 700;
        break;
      default:  // whole and half numbers, negative ones too
        x[i] = static_cast<float>(draw(41) - 20);
        y[i] = static_cast<float>(draw(81) - 40) / 2;
    }
  }
  vpow(x.data(), y.data(), z.data(), kMany);
  for (size_t i = 0; i < kMany; ++i) {
    const auto exact = static_cast<double>(std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i])));
    ASSERT_LE(ulp_error(z[i], exact), 0.51) << x[i] << "^" << y[i] << " = " << z[i];
  }
}

TEST(Vmath, ProductsWithLogarithms) {
  std::vector<float> x, y;
  for (int i = 0; i < 3000; ++i) {
    x.push_back(static_cast<float>(i % 7 - 3) * 0.37f);
    y.push_back(std::ldexp(1.0f + static_cast<float>(i) / 3000, i % 60 - 30));
  }
  for (const float other : {0.0f, -0.0f, -1.0f, -2.0f, NAN, INFINITY}) {
    for (const float factor : {0.0f, -0.0f, 1.5f, NAN, INFINITY}) {
      x.push_back(factor);
      y.push_back(other);
    }
  }
  std::vector<float> z(x.size());
  const auto n = static_cast<int64_t>(x.size());
  vxlogy(x.data(), y.data(), z.data(), n);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = x[i] == 0 ? 0 : x[i] * std::log(static_cast<double>(y[i]));
    ASSERT_LE(ulp_error(z[i], exact), 2.5) << x[i] << " log(" << y[i] << ") = " << z[i];
  }
  vxlog1py(x.data(), y.data(), z.data(), n);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = x[i] == 0 ? 0 : x[i] * std::log1p(static_cast<double>(y[i]));
    ASSERT_LE(ulp_error(z[i], exact), 2.5) << x[i] << " log1p(" << y[i] << ") = " << z[i];
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
  EXPECT_EQ(std::count(avx2.begin(), avx2.end(), '\n'), 31);
  EXPECT_EQ(sums_of_bits("avx512"), avx2);
}

// Exp and Log of doubles, against long double.
TEST(Vmath, DoublesWithinUlp) {
  const auto error = [](double got, long double exact) -> double {
    const auto rounded = static_cast<double>(exact);
    if (std::isnan(rounded)) return std::isnan(got) ? 0 : INFINITY;
    if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : INFINITY;
    const int exponent = std::max(std::ilogb(rounded == 0 ? 5e-324 : rounded), -1022);
    return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, exponent - 52));
  };
  std::vector<double> x = {0,      -0.0,   1,      -1,     INFINITY, -INFINITY, NAN,
                           5e-324, 1e-310, 709.78, 709.79, -745.1,   -745.2,    1e300};
  uint64_t state = 1;
  for (int i = 0; i < 300000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(state >> 11) * 0x1p-53;  // in [0, 1)
    x.insert(x.end(), {std::bit_cast<double>(state ^ state >> 29), unit * 1600 - 800, unit * 2 - 1, 1 + unit * 0x1p-8,
                       1 - unit * 0x1p-8, 0.5 + unit, 100 * unit});
  }
  std::vector<double> y(x.size());
  const auto n = static_cast<int64_t>(x.size());
  const NoAttrs none;
  unary_kernel<Exp, double, double>()(x.data(), y.data(), n, &none);  // the pool would count denormals as 0
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(error(y[i], std::exp(static_cast<long double>(x[i]))), 1.01) << "exp(" << x[i] << ") = " << y[i];
  }
  unary_kernel<Log, double, double>()(x.data(), y.data(), n, &none);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(error(y[i], std::log(static_cast<long double>(x[i]))), 1) << "log(" << x[i] << ") = " << y[i];
  }
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
