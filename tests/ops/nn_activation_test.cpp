#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel {
namespace {

using namespace test;

struct Activation {
  const char* name;
  Tensor (*ours)(const Operand&);
  double (*naive)(double);
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

const Activation kCases[] = {
    {"relu", nn::relu, [](double x) { return std::max(x, 0.0); }},
    {"relu6", nn::relu6, [](double x) { return std::min(std::max(x, 0.0), 6.0); }},
    {"leaky_relu", [](const Operand& x) { return nn::leaky_relu(x, 0.3); },
     [](double x) { return x > 0 ? x : .3f * x; }},
    {"elu", nn::elu, [](double x) { return x > 0 ? x : std::exp(x) - 1; }},
    {"selu", nn::selu,
     [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1)); }},
    {"softplus", nn::softplus, [](double x) { return x > 30 ? x : std::log(1 + std::exp(x)); }},
    {"softsign", nn::softsign, [](double x) { return x / (1 + std::fabs(x)); }},
    {"silu", [](const Operand& x) { return nn::silu(x); }, [](double x) { return x * sigmoid_of(x); }},
    {"swish", [](const Operand& x) { return nn::swish(x, 1.5); }, [](double x) { return x * sigmoid_of(1.5 * x); }},
    {"gelu", [](const Operand& x) { return nn::gelu(x); },
     [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"gelu_tanh", [](const Operand& x) { return nn::gelu(x, true); },
     [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
};

TEST(NnActivation, ValuesOfEveryFloatingType) {
  for (const Activation& c : kCases) {
    for (DType dtype : {float32, float64, float16, bfloat16}) {
      SCOPED_TRACE(std::string(c.name) + " of " + dtype_name(dtype));
      for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7}, Shape{3, 5, 17}}) {
        const Tensor x = random_tensor(shape, dtype, 3, -9, 9);
        std::vector<double> expected;
        for (double v : values_of(x)) expected.push_back(c.naive(v));
        expect_close(c.ours(x), expected, shape, tolerance(dtype));
      }
    }
  }
}

TEST(NnActivation, Gradients) {
  for (const Activation& c : kCases) {
    SCOPED_TRACE(c.name);
    expect_gradients([&](const std::vector<Tensor>& x) { return c.ours(x[0]); },
                     {random_tensor({4, 5}, float64, 5, -4, 4)});
  }
}

TEST(NnActivation, Integers) {
  EXPECT_EQ(nn::relu(Tensor{-2, 0, 9}).to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 9}));
  EXPECT_EQ(nn::relu6(Tensor{-2, 3, 9}).to_vector<int32_t>(), (std::vector<int32_t>{0, 3, 6}));
}

TEST(NnActivation, NotANumberPasses) {
  const float nan = std::nanf("");
  for (const Activation& c : kCases) {
    EXPECT_TRUE(std::isnan(c.ours(Tensor{1.f, nan}).host<float>()[1])) << c.name;
  }
}

TEST(NnActivation, LargeInputsStayFinite) {
  EXPECT_EQ(nn::softplus(Tensor{-1000.f, 1000.f}).to_vector<float>(), (std::vector<float>{0.f, 1000.f}));
  EXPECT_EQ(nn::elu(Tensor{-1000.f, 1000.f}).to_vector<float>(), (std::vector<float>{-1.f, 1000.f}));
}

TEST(NnActivation, SameBitsWithOneAndTwoThreads) {
  const Tensor x = random_tensor({311, 701}, float32, 9, -5, 5);
  for (const Activation& c : kCases) {
    set_num_threads(1);
    const Tensor one = c.ours(x);
    set_num_threads(2);
    expect_same_bits(one, c.ours(x));
  }
}

TEST(NnActivation, Errors) {
  expect_error([] { nn::elu(Tensor{1, 2}); }, Code::invalid_argument, "[Elu]");
  expect_error([] { nn::relu(Tensor{"a"}); }, Code::invalid_argument, "[Relu]");
}

}  // namespace
}  // namespace runnel
