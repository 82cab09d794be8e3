// Every optimizer against its rule written naively in double, one element at a time: dense gradients and IndexedSlices,
// eager and in a function.
#include "runnel/keras/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runnel/graph/decompose.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/passes/pass.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/small_stack.h"

namespace runnel::keras {
namespace {

using Element = std::vector<double>;  // of a variable, then of its slots
using Rule = std::function<void(Element& x, double g, int t)>;
using MakeOptimizer = std::function<OptimizerPtr()>;

constexpr int kSteps = 5;
constexpr double kRate = 0.125;  // exact in float32

// Two variables; the second gets IndexedSlices with a row that comes twice, if asked for.
struct Variables {
  explicit Variables(DType dtype)
      : a(cast(Tensor{1.f, -2.f, 0.5f}, dtype), {.name = "a"}),
        b(cast(Tensor{{0.1f, 0.2f}, {-0.3f, 0.4f}, {1.f, 0.f}}, dtype), {.name = "b"}) {}
  std::vector<Variable> all() const { return {a, b}; }
  Variable a, b;
};

std::vector<double> gradient_of_a(int t) { return {0.5 * t, -1.0 + 0.25 * t, t % 2 ? 2.0 : 0.0}; }
// The values of rows 2, 0 and 2 again.
std::vector<double> rows_of_b(int t) { return {0.5, -0.25 * t, 1.0 / t, 0.75, -1.5, 0.125 * t}; }
std::vector<double> gradient_of_b(int t) {
  const auto rows = rows_of_b(t);
  return {rows[2], rows[3], 0, 0, rows[0] + rows[4], rows[1] + rows[5]};
}

std::vector<double> doubles(const Tensor& t) { return cast(t, float64).to_vector<double>(); }

void apply_step(Optimizer& optimizer, const Variables& v, const Tensor& ga, const Tensor& gb, bool slices) {
  Gradient second = gb;
  if (slices) second = IndexedSlices{gb, Tensor{2, 0, 2}, Tensor{3, 2}};
  optimizer.apply_gradients({{ga, v.a}, {second, v.b}});
}

// Runs the optimizer and the rule side by side. `kinds` are the slots that the rule has, with their first values.
void check_optimizer(const MakeOptimizer& make, const std::vector<std::pair<std::string, double>>& kinds,
                     const Rule& rule, double tolerance_of_double = 1e-12) {
  for (const DType dtype : {float64, float32}) {
    for (const bool slices : {false, true}) {
      for (const bool traced : {false, true}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + (slices ? " slices" : " dense") +
                     (traced ? " traced" : " eager"));
        const Variables v(dtype);
        const OptimizerPtr optimizer = make();
        auto f = function([&](const Tensor& ga, const Tensor& gb) { apply_step(*optimizer, v, ga, gb, slices); });
        std::vector<Element> x;
        for (const Variable& each : v.all()) {
          for (const double value : doubles(each)) {
            x.push_back({value});
            for (const auto& kind : kinds) x.back().push_back(kind.second);
          }
        }
        for (int t = 1; t <= kSteps; ++t) {
          const Tensor ga = cast(Tensor::of<double>(gradient_of_a(t)), dtype);
          const Tensor gb = cast(slices ? reshape(Tensor::of<double>(rows_of_b(t)), {3, 2})
                                        : reshape(Tensor::of<double>(gradient_of_b(t)), {3, 2}),
                                 dtype);
          if (traced) {
            f(ga, gb);
          } else {
            apply_step(*optimizer, v, ga, gb, slices);
          }
          std::vector<double> g = gradient_of_a(t);
          const std::vector<double> more = gradient_of_b(t);
          g.insert(g.end(), more.begin(), more.end());
          for (size_t i = 0; i < x.size(); ++i) rule(x[i], g[i], t);
        }
        EXPECT_EQ(f.num_traces(), traced ? 1 : 0);
        EXPECT_EQ(optimizer->iterations().value().item<int64_t>(), kSteps);
        const double tolerance = dtype == float64 ? tolerance_of_double : 2e-5;
        for (size_t k = 0; k <= kinds.size(); ++k) {
          std::vector<double> got;
          for (const Variable& each : v.all()) {
            for (const double value : doubles(k == 0 ? each : optimizer->slot(kinds[k - 1].first, each))) {
              got.push_back(value);
            }
          }
          for (size_t i = 0; i < x.size(); ++i) {
            EXPECT_NEAR(got[i], x[i][k], tolerance * std::max(1.0, std::abs(x[i][k])))
                << (k == 0 ? "variable" : kinds[k - 1].first) << " element " << i;
          }
        }
      }
    }
  }
}

template <class O>
MakeOptimizer maker(typename O::Options options) {
  options.learning_rate = kRate;
  return [options] { return std::make_shared<O>(options); };
}

TEST(Optimizers, SGD) {
  check_optimizer(maker<optimizers::SGD>({}), {}, [](Element& x, double g, int) { x[0] -= kRate * g; });
  for (const bool nesterov : {false, true}) {
    check_optimizer(maker<optimizers::SGD>({.momentum = 0.75, .nesterov = nesterov}), {{"m", 0}},
                    [=](Element& x, double g, int) {
                      x[1] = 0.75 * x[1] - kRate * g;
                      x[0] += nesterov ? 0.75 * x[1] - kRate * g : x[1];
                    });
  }
}

TEST(Optimizers, Adam) {
  for (const bool amsgrad : {false, true}) {
    std::vector<std::pair<std::string, double>> kinds{{"m", 0}, {"v", 0}};
    if (amsgrad) kinds.emplace_back("vhat", 0);
    check_optimizer(maker<optimizers::Adam>({.beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-3, .amsgrad = amsgrad}), kinds,
                    [=](Element& x, double g, int t) {
                      x[1] = 0.8 * x[1] + 0.2 * g;
                      x[2] = 0.9 * x[2] + 0.1 * g * g;
                      if (amsgrad) x[3] = std::max(x[3], x[2]);
                      const double alpha = kRate * std::sqrt(1 - std::pow(0.9, t)) / (1 - std::pow(0.8, t));
                      x[0] -= alpha * x[1] / (std::sqrt(amsgrad ? x[3] : x[2]) + 1e-3);
                    });
  }
}

TEST(Optimizers, AdamW) {
  check_optimizer(maker<optimizers::AdamW>({.weight_decay = 0.25}), {{"m", 0}, {"v", 0}},
                  [](Element& x, double g, int t) {
                    x[0] -= x[0] * 0.25 * kRate;
                    x[1] = 0.9 * x[1] + 0.1 * g;
                    x[2] = 0.999 * x[2] + 0.001 * g * g;
                    const double alpha = kRate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
                    x[0] -= alpha * x[1] / (std::sqrt(x[2]) + 1e-7);
                  });
  EXPECT_EQ(optimizers::AdamW().get_config()["weight_decay"].as_double(), 0.004);
}

TEST(Optimizers, RMSprop) {
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.5}) {
      std::vector<std::pair<std::string, double>> kinds{{"velocity", 0}};
      if (momentum > 0) kinds.emplace_back("momentum", 0);
      if (centered) kinds.emplace_back("average_gradient", 0);
      check_optimizer(
          maker<optimizers::RMSprop>({.rho = 0.8, .momentum = momentum, .epsilon = 1e-2, .centered = centered}), kinds,
          [=](Element& x, double g, int) {
            double& average = x.back();
            x[1] = 0.8 * x[1] + 0.2 * g * g;
            double scale = x[1] + 1e-2;
            if (centered) {
              average = 0.8 * average + 0.2 * g;
              scale -= average * average;
            }
            double step = kRate * g / std::sqrt(scale);
            if (momentum > 0) step = x[2] = momentum * x[2] + step;
            x[0] -= step;
          });
    }
  }
}

TEST(Optimizers, AdagradAndAdadelta) {
  check_optimizer(maker<optimizers::Adagrad>({.initial_accumulator_value = 0.25, .epsilon = 1e-2}),
                  {{"accumulator", 0.25}}, [](Element& x, double g, int) {
                    x[1] += g * g;
                    x[0] -= kRate * g / std::sqrt(x[1] + 1e-2);
                  });
  check_optimizer(maker<optimizers::Adadelta>({.rho = 0.8, .epsilon = 1e-2}),
                  {{"accumulated_grad", 0}, {"accumulated_delta_var", 0}}, [](Element& x, double g, int) {
                    x[1] = 0.8 * x[1] + 0.2 * g * g;
                    const double delta = std::sqrt(x[2] + 1e-2) * g / std::sqrt(x[1] + 1e-2);
                    x[2] = 0.8 * x[2] + 0.2 * delta * delta;
                    x[0] -= kRate * delta;
                  });
}

TEST(Optimizers, Adamax) {
  check_optimizer(maker<optimizers::Adamax>({.beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-3}), {{"m", 0}, {"u", 0}},
                  [](Element& x, double g, int t) {
                    x[1] = 0.8 * x[1] + 0.2 * g;
                    x[2] = std::max(0.9 * x[2], std::abs(g));
                    x[0] -= kRate * x[1] / ((1 - std::pow(0.8, t)) * (x[2] + 1e-3));
                  });
}

TEST(Optimizers, Nadam) {
  const auto u = [](int t) { return 0.8 * (1 - 0.5 * std::pow(0.96, t)); };
  // The momenta are computed in float32 whatever the dtype of the variables.
  check_optimizer(
      maker<optimizers::Nadam>({.beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-3}), {{"m", 0}, {"v", 0}},
      [=](Element& x, double g, int t) {
        double product = 1;
        for (int i = 1; i <= t; ++i) product *= u(i);
        x[1] = 0.8 * x[1] + 0.2 * g;
        x[2] = 0.9 * x[2] + 0.1 * g * g;
        const double m = u(t + 1) * x[1] / (1 - product * u(t + 1)) + (1 - u(t)) * g / (1 - product);
        x[0] -= kRate * m / (std::sqrt(x[2] / (1 - std::pow(0.9, t))) + 1e-3);
      },
      1e-6);
}

TEST(Optimizers, Ftrl) {
  for (const double beta : {0.0, 0.5}) {
    check_optimizer(maker<optimizers::Ftrl>({.learning_rate_power = -0.75,
                                             .initial_accumulator_value = 0.25,
                                             .l1_regularization_strength = 0.5,
                                             .l2_regularization_strength = 0.125,
                                             .l2_shrinkage_regularization_strength = 0.25,
                                             .beta = beta}),
                    {{"accumulator", 0.25}, {"linear", 0}}, [=](Element& x, double g, int) {
                      const double n = x[1] + g * g;
                      const double sigma = (std::pow(n, 0.75) - std::pow(x[1], 0.75)) / kRate;
                      x[2] += g + 2 * 0.25 * x[0] - sigma * x[0];
                      const double l2 = 0.125 + beta / (2 * kRate);
                      x[0] = (std::clamp(x[2], -0.5, 0.5) - x[2]) / (std::pow(n, 0.75) / kRate + 2 * l2);
                      x[1] = n;
                    });
  }
}

TEST(Optimizers, WeightsOfAnyKindDecay) {
  check_optimizer(maker<optimizers::SGD>({.momentum = 0.5, .weight_decay = 0.25}), {{"m", 0}},
                  [](Element& x, double g, int) {
                    x[0] -= x[0] * 0.25 * kRate;
                    x[1] = 0.5 * x[1] - kRate * g;
                    x[0] += x[1];
                  });
}

TEST(Optimizers, ClipValue) {
  // Elements of rows are cut before rows that come twice are added: as in Keras.
  for (const bool slices : {false, true}) {
    const Variables v(float32);
    optimizers::SGD sgd({.learning_rate = 1.0, .clipvalue = 0.5});
    const Tensor gb =
        slices ? Tensor{{3.f, 0.25f}, {-2.f, 0.f}, {0.25f, 0.25f}} : Tensor{{3.f, 0.25f}, {-2.f, 0.f}, {0.f, 1.f}};
    apply_step(sgd, v, Tensor{2.f, -0.25f, -3.f}, gb, slices);
    EXPECT_THAT(v.a.value().to_vector<float>(), testing::ElementsAre(0.5f, -1.75f, 1.f));
    const std::vector<float> b = v.b.value().to_vector<float>();
    const std::vector<float> expected = slices ? std::vector<float>{0.6f, 0.2f, -0.3f, 0.4f, 0.25f, -0.5f}
                                               : std::vector<float>{-0.4f, -0.05f, 0.2f, 0.4f, 1.f, -0.5f};
    EXPECT_THAT(b, testing::Pointwise(testing::FloatNear(1e-6f), expected));
  }
}

TEST(Optimizers, ClipNorm) {
  for (const bool slices : {false, true}) {
    const Variables v(float32);
    optimizers::SGD each({.learning_rate = 1.0, .clipnorm = 1.0});
    const Tensor gb = slices ? Tensor{{3.f, 0.f}, {0.f, 0.f}, {0.f, 4.f}} : Tensor{{0.f, 0.f}, {0.f, 0.f}, {3.f, 4.f}};
    apply_step(each, v, Tensor{0.f, 0.5f, 0.f}, gb, slices);
    EXPECT_THAT(v.a.value().to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-6f), {1.f, -2.5f, 0.5f}));
    EXPECT_THAT(v.b.value().to_vector<float>(),
                testing::Pointwise(testing::FloatNear(1e-6f), {0.1f, 0.2f, -0.3f, 0.4f, 0.4f, -0.8f}));
    const Variables w(float32);
    optimizers::SGD together({.learning_rate = 1.0, .global_clipnorm = 6.5});
    apply_step(together, w, Tensor{12.f, 0.f, 0.f}, gb, slices);  // the norm is 13
    EXPECT_THAT(w.a.value().to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-6f), {-5.f, -2.f, 0.5f}));
    EXPECT_THAT(w.b.value().to_vector<float>(),
                testing::Pointwise(testing::FloatNear(1e-6f), {0.1f, 0.2f, -0.3f, 0.4f, -0.5f, -2.f}));
  }
}

int count_ops(const Graph& graph, const std::string& op) {
  int n = 0;
  for (const auto& node : graph.nodes()) n += node->is(op);
  return n;
}

TEST(Optimizers, OneOpUpdatesAllVariables) {
  const std::vector<std::pair<OptimizerPtr, std::string>> all{
      {std::make_shared<optimizers::SGD>(kRate), "ResourceApplyGradientDescent"},
      {std::make_shared<optimizers::Adam>(kRate), "ResourceApplyAdam"},
      {std::make_shared<optimizers::RMSprop>(kRate), "_ApplyKerasRMSprop"},
      {std::make_shared<optimizers::RMSprop>(optimizers::RMSpropOptions{.centered = true}),
       "_ApplyKerasCenteredRMSprop"},
      {std::make_shared<optimizers::Adagrad>(kRate), "_ApplyKerasAdagrad"},
      {std::make_shared<optimizers::Nadam>(kRate), "_ApplyKerasNadam"}};
  const Tensor ga{1.f, 2.f, -3.f}, gb{{1.f, 0.f}, {2.f, -1.f}, {0.5f, 4.f}};
  for (const auto& [optimizer, op] : all) {
    const Variables v(float32);
    auto f = function([&](const Tensor& a, const Tensor& b) { apply_step(*optimizer, v, a, b, false); });
    const ConcreteFunction concrete = f.get_concrete_function(ga, gb);
    const auto graph = concrete.graph().clone();
    optimize_and_verify(*graph);
    EXPECT_EQ(count_ops(*graph, "_Many" + op), 1) << graph->to_text();
    EXPECT_EQ(count_ops(*graph, op), 0) << graph->to_text();
    if (op == "ResourceApplyAdam") {
      EXPECT_EQ(count_ops(*graph, "Pow"), 2) << graph->to_text();
      EXPECT_LE(graph->num_nodes() - count_ops(*graph, "_Arg") - count_ops(*graph, "Const"), 8) << graph->to_text();
    }
    // For files of TensorFlow it is said in TensorFlow's ops, to the same effect.
    const auto plain = decomposed(*graph);
    for (const auto& node : plain->nodes()) EXPECT_TRUE(node->is("_Arg") || node->op->name[0] != '_') << node->op->name;
    const std::vector<Tensor> before{v.a.value(), v.b.value()};
    const std::vector<Tensor> state = optimizer->get_weights();
    const auto* nadam = dynamic_cast<const optimizers::Nadam*>(optimizer.get());
    const Variable product = nadam ? Variable::from_handle(nadam->find_edge("_u_product")->handle) : Variable();
    f(ga, gb);
    const std::vector<float> expected_a = v.a.value().to_vector<float>(), expected_b = v.b.value().to_vector<float>();
    v.a.assign(before[0]);
    v.b.assign(before[1]);
    optimizer->set_weights(state);
    if (nadam) product.assign(1);
    std::vector<Tensor> in{ga, gb};
    in.insert(in.end(), concrete.captured_inputs().begin(), concrete.captured_inputs().end());
    GraphFunction(plain->clone()).run(in);
    EXPECT_THAT(v.a.value().to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-6f), expected_a)) << op;
    EXPECT_THAT(v.b.value().to_vector<float>(), testing::Pointwise(testing::FloatNear(1e-6f), expected_b)) << op;
  }
}

TEST(Optimizers, MinimizeInsideOfItsOwnLossIsAnError) {
  Variable w(ones({2}));
  optimizers::SGD sgd(0.1);
  std::function<Tensor()> loss = [&] {
    sgd.minimize(loss, {w});
    return reduce_sum(w * w);
  };
  test::on_small_stack([&] {
    test::expect_error([&] { sgd.minimize(loss, {w}); }, Code::resource_exhausted,
                       "[minimize] the calls inside one another have used up the stack");
  });
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace runnel::keras
