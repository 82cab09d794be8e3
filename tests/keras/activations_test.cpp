// Activations, regularizers, constraints and dtype policies.
#include "runnel/keras/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runnel/keras/policy.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::keras {
namespace {

using runnel::test::expect_close;
using runnel::test::expect_error;
using runnel::test::expect_gradients;
using runnel::test::tensor_of;

double softplus_at(double x) { return std::log1p(std::exp(x)); }

struct Formula {
  const char* name;
  std::function<double(double)> at;
};

const std::vector<Formula>& activation_formulas() {
  static const std::vector<Formula> all = {
      {"linear", [](double x) { return x; }},
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"relu6", [](double x) { return x < 0   ? 0
                                      : x > 6 ? 6
                                              : x; }},
      {"elu", [](double x) { return x > 0 ? x : std::exp(x) - 1; }},
      {"selu", [](double x) { return 1.05070098735548049 * (x > 0 ? x : 1.67326324235437728 * (std::exp(x) - 1)); }},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2))); }},
      {"leaky_relu",
       [](double x) { return x > 0 ? x : static_cast<double>(0.2f) * x; }},  // the op keeps its alpha as a float32
      {"swish", [](double x) { return x / (1 + std::exp(-x)); }},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"softplus", softplus_at},
      {"softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"hard_sigmoid", [](double x) { return std::min(1., std::max(0., 0.2 * x + 0.5)); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"exponential", [](double x) { return std::exp(x); }},
      {"mish", [](double x) { return x * std::tanh(softplus_at(x)); }},
  };
  return all;
}

const std::vector<double> kPoints = {-4, -2.7, -1, -0.3, 0.2, 1, 2.6, 7};

TEST(Activations, FollowTheirFormulas) {
  for (const Formula& f : activation_formulas()) {
    SCOPED_TRACE(f.name);
    std::vector<double> expected;
    for (const double x : kPoints) expected.push_back(f.at(x));
    const Tensor x = tensor_of(kPoints, {2, 4}, float64);
    const Activation activation = f.name;
    expect_close(activation(x), expected, {2, 4}, 1e-9);
    expect_gradients([&](const std::vector<Tensor>& in) { return activation(in[0]); }, {x}, 8, 1e-5, false);
    EXPECT_EQ(activation.config().to_json(), '"' + std::string(f.name) + '"');
  }
}

TEST(Activations, SoftmaxOverTheLastAxis) {
  const Tensor x = tensor_of({1, 2, 3, 0, 0, 5}, {2, 3}, float64);
  std::vector<double> p, log_p;
  for (const auto& row : {std::vector<double>{1, 2, 3}, std::vector<double>{0, 0, 5}}) {
    double sum = 0;
    for (const double v : row) sum += std::exp(v);
    for (const double v : row) p.push_back(std::exp(v) / sum), log_p.push_back(v - std::log(sum));
  }
  expect_close(Activation("softmax")(x), p, {2, 3}, 1e-12);
  expect_close(Activation("log_softmax")(x), log_p, {2, 3}, 1e-12);
  expect_error([] { Activation("softmax")(Tensor{1.f, 2.f}); }, Code::invalid_argument, "two dimensions");
}

TEST(Activations, WithSettings) {
  const Tensor x = tensor_of({-2, 3}, {2}, float64);
  const Activation leaky = activations::leaky_relu(0.1);
  expect_close(leaky(x), {-0.2, 3}, {2}, 1e-7);
  EXPECT_EQ(leaky.config().to_json(), R"({"class_name":"LeakyReLU","config":{"alpha":0.1}})");
  expect_close(Activation::from_config(leaky.config())(x), {-0.2, 3}, {2}, 1e-7);
  const Activation elu = activations::elu(2);
  expect_close(elu(x), {2 * (std::exp(-2) - 1), 3}, {2}, 1e-12);
  expect_close(Activation::from_config(elu.config())(x), {2 * (std::exp(-2) - 1), 3}, {2}, 1e-12);
}

TEST(Activations, FunctionsAndUnknownNames) {
  const Activation op = nn::relu;
  expect_close(op(Tensor{-1.f, 2.f}), {0, 2}, {2}, 0);
  expect_error([&] { op.config(); }, Code::failed_precondition, "activation");
  expect_error([] { Activation("rely"); }, Code::not_found, "no activation 'rely'; there are linear, relu");
  EXPECT_FALSE(Activation());
  EXPECT_EQ(Activation().config().to_json(), R"("linear")");  // what Keras writes for none
  EXPECT_FALSE(Activation::from_config(Config()));
  expect_close(Activation::from_config("linear")(Tensor{-1.f, 2.f}), {-1, 2}, {2}, 0);
  EXPECT_TRUE(Regularizer().config().is_null());
  EXPECT_TRUE(Constraint().config().is_null());
}

TEST(Regularizers, SumsAndConfigurations) {
  const Tensor w{{1.f, -2.f}, {3.f, -4.f}};
  expect_close(regularizers::l1(0.5)(w), {5}, {}, 1e-6);
  expect_close(regularizers::l2(0.5)(w), {15}, {}, 1e-6);
  expect_close(regularizers::l1_l2(0.1, 0.5)(w), {16}, {}, 1e-6);
  expect_close(Regularizer("l2")(w), {0.3}, {}, 1e-6);
  expect_close(Regularizer("L1")(w), {0.1}, {}, 1e-6);
  expect_close(Regularizer("l1_l2")(w), {0.4}, {}, 1e-6);
  EXPECT_EQ(Regularizer("l2").config().to_json(), R"({"class_name":"L2","config":{"l2":0.01}})");
  const Regularizer both = regularizers::l1_l2(0.1, 0.5);
  EXPECT_EQ(both.config().to_json(), R"({"class_name":"L1L2","config":{"l1":0.1,"l2":0.5}})");
  expect_close(Regularizer::from_config(both.config())(w), {16}, {}, 1e-6);
  expect_error([] { Regularizer("l3"); }, Code::not_found, "no regularizer 'l3'; there are l1, l2, l1_l2");
}

TEST(Constraints, NormsOfColumns) {
  const Tensor w{{3.f, 0.3f}, {-4.f, 0.4f}};  // columns with norms 5 and 0.5
  expect_close(constraints::max_norm(2)(w), {1.2, 0.3, -1.6, 0.4}, {2, 2}, 1e-5);
  expect_close(Constraint("max_norm")(w), {1.2, 0.3, -1.6, 0.4}, {2, 2}, 1e-5);
  expect_close(constraints::unit_norm()(w), {0.6, 0.6, -0.8, 0.8}, {2, 2}, 1e-5);
  expect_close(constraints::min_max_norm(1, 2)(w), {1.2, 0.6, -1.6, 0.8}, {2, 2}, 1e-5);
  // Half of the way: norms 3.5 and 0.75.
  expect_close(constraints::min_max_norm(1, 2, 0.5)(w), {2.1, 0.45, -2.8, 0.6}, {2, 2}, 1e-5);
  expect_close(Constraint("NonNeg")(w), {3, 0.3, 0, 0.4}, {2, 2}, 1e-6);
}

TEST(Constraints, OtherAxes) {
  const Tensor w{{3.f, -4.f}, {0.3f, 0.4f}};
  expect_close(constraints::max_norm(2, 1)(w), {1.2, -1.6, 0.3, 0.4}, {2, 2}, 1e-5);
  const double norm = std::sqrt(25.25);
  expect_close(constraints::unit_norm({0, 1})(w), {3 / norm, -4 / norm, 0.3 / norm, 0.4 / norm}, {2, 2}, 1e-5);
}

TEST(Constraints, Configurations) {
  const auto json = [](const Constraint& c) { return c.config().to_json(); };
  EXPECT_EQ(json("max_norm"), R"({"class_name":"MaxNorm","config":{"max_value":2.0,"axis":0}})");
  EXPECT_EQ(json(constraints::unit_norm({0, 1, 2})), R"({"class_name":"UnitNorm","config":{"axis":[0,1,2]}})");
  EXPECT_EQ(json("min_max_norm"),
            R"({"class_name":"MinMaxNorm","config":{"min_value":0.0,"max_value":1.0,"rate":1.0,"axis":0}})");
  EXPECT_EQ(json("non_neg"), R"({"class_name":"NonNeg","config":{}})");
  for (const Constraint& c : {constraints::max_norm(3, {0, 1}), constraints::min_max_norm(1, 3, 0.5, 1)}) {
    EXPECT_EQ(json(Constraint::from_config(c.config())), json(c));
  }
  expect_error([] { Constraint("norm"); }, Code::not_found, "no constraint 'norm'; there are max_norm");
}

TEST(Policy, NamesAndDtypes) {
  const Policy mixed = "mixed_bfloat16";
  EXPECT_EQ(mixed.variable_dtype(), float32);
  EXPECT_EQ(mixed.compute_dtype(), bfloat16);
  EXPECT_EQ(Policy("mixed_float16").compute_dtype(), float16);
  EXPECT_EQ(Policy(float64).name(), "float64");
  EXPECT_EQ(Policy("int32").variable_dtype(), int32);
  EXPECT_FALSE(Policy().defined());
  EXPECT_FALSE(Policy("").defined());
  expect_error([] { Policy("mixed_int8"); }, Code::invalid_argument, "mixed_int8");
}

TEST(Policy, Configurations) {
  EXPECT_EQ(Policy::from_config(Policy("mixed_float16").config()).compute_dtype(), float16);
  const Config object = Config::from_json(R"({"class_name":"Policy","config":{"name":"mixed_bfloat16"}})");
  EXPECT_EQ(Policy::from_config(object).name(), "mixed_bfloat16");
  EXPECT_FALSE(Policy::from_config(Config()).defined());
}

TEST(Policy, TheGlobalOne) {
  EXPECT_EQ(mixed_precision::global_policy().name(), "float32");
  mixed_precision::set_global_policy("mixed_float16");
  EXPECT_EQ(mixed_precision::global_policy().name(), "mixed_float16");
  expect_error([] { mixed_precision::set_global_policy("int32"); }, Code::invalid_argument, "floating");
  EXPECT_EQ(mixed_precision::global_policy().name(), "mixed_float16");
  mixed_precision::set_global_policy({});
  EXPECT_EQ(mixed_precision::global_policy().name(), "float32");
}

}  // namespace
}  // namespace runnel::keras
