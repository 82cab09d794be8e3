#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::HasSubstr;
using Vec = std::vector<double>;

const Vec kGrads[] = {{0.5, -2.0, 0.0}, {0.25, 1.0, -0.75}};

// Runs an update twice on variables [1, -1, 0.5] with slots that start at `slot_start`, and the same step written
// naively in double for every element: step(x, g, t) with x = {var, slots...}.
void check(const std::function<void(const std::vector<Variable>&, const Tensor&, int)>& ours, size_t slots,
           double slot_start, const std::function<void(Vec&, double, int)>& naive) {
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    std::vector<Variable> v;
    v.emplace_back(cast(Tensor{1.f, -1.f, 0.5f}, dtype));
    for (size_t s = 0; s < slots; ++s) v.emplace_back(fill({3}, cast(Tensor(static_cast<float>(slot_start)), dtype)));
    std::vector<Vec> x{{1.0}, {-1.0}, {0.5}};
    for (Vec& e : x) e.resize(slots + 1, slot_start);
    for (int t = 1; t <= 2; ++t) {
      const Vec& g = kGrads[t - 1];
      ours(v, cast(Tensor::of<double>(g), dtype), t);
      for (size_t i = 0; i < 3; ++i) naive(x[i], g[i], t);
    }
    const double tolerance = dtype == float64 ? 1e-12 : dtype == float32 ? 2e-6 : dtype == float16 ? 4e-3 : 4e-2;
    for (size_t s = 0; s <= slots; ++s) {
      const auto got = cast(v[s].value(), float64).to_vector<double>();
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(got[i], x[i][s], tolerance * std::max(1.0, std::abs(x[i][s])))
            << dtype_name(dtype) << " slot " << s << " element " << i;
      }
    }
  }
}

TEST(Training, GradientDescent) {
  check([](auto& v, const Tensor& g, int) { training::apply_gradient_descent(v[0], 0.1, g); }, 0, 0,
        [](Vec& x, double g, int) { x[0] -= 0.1 * g; });
}

TEST(Training, Momentum) {
  for (bool nesterov : {false, true}) {
    check(
        [=](auto& v, const Tensor& g, int) {
          training::apply_momentum(v[0], v[1], {0.1, 0.9, nesterov}, g);
        },
        1, 0,
        [=](Vec& x, double g, int) {
          x[1] = 0.9 * x[1] + g;
          x[0] -= nesterov ? 0.1 * (g + 0.9 * x[1]) : 0.1 * x[1];
        });
    check(
        [=](auto& v, const Tensor& g, int) {
          training::apply_keras_momentum(v[0], v[1], {0.1, 0.9, nesterov}, g);
        },
        1, 0,
        [=](Vec& x, double g, int) {
          x[1] = 0.9 * x[1] - 0.1 * g;
          x[0] += nesterov ? 0.9 * x[1] - 0.1 * g : x[1];
        });
  }
}

training::AdamStep adam_at(int t) {
  return {.beta1_power = std::pow(0.9, t),
          .beta2_power = std::pow(0.99, t),
          .lr = 0.1,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .epsilon = 1e-3};
}

TEST(Training, Adam) {
  check([](auto& v, const Tensor& g, int t) { training::apply_adam(v[0], v[1], v[2], adam_at(t), g); }, 2, 0,
        [](Vec& x, double g, int t) {
          x[1] = 0.9 * x[1] + 0.1 * g;
          x[2] = 0.99 * x[2] + 0.01 * g * g;
          const double lr = 0.1 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t));
          x[0] -= lr * x[1] / (std::sqrt(x[2]) + 1e-3);
        });
}

TEST(Training, AdamWithAmsgrad) {
  check(
      [](auto& v, const Tensor& g, int t) { training::apply_adam_with_amsgrad(v[0], v[1], v[2], v[3], adam_at(t), g); },
      3, 0,
      [](Vec& x, double g, int t) {
        x[1] = 0.9 * x[1] + 0.1 * g;
        x[2] = 0.99 * x[2] + 0.01 * g * g;
        x[3] = std::max(x[3], x[2]);
        const double lr = 0.1 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t));
        x[0] -= lr * x[1] / (std::sqrt(x[3]) + 1e-3);
      });
}

TEST(Training, AdaMax) {
  check([](auto& v, const Tensor& g, int t) { training::apply_adamax(v[0], v[1], v[2], adam_at(t), g); }, 2, 0,
        [](Vec& x, double g, int t) {
          x[1] = 0.9 * x[1] + 0.1 * g;
          x[2] = std::max(0.99 * x[2], std::abs(g));
          x[0] -= 0.1 / (1 - std::pow(0.9, t)) * x[1] / (x[2] + 1e-3);
        });
}

TEST(Training, RMSProp) {
  const training::RMSPropStep step{.lr = 0.1, .rho = 0.9, .momentum = 0.5, .epsilon = 1e-2};
  check([=](auto& v, const Tensor& g, int) { training::apply_rms_prop(v[0], v[1], v[2], step, g); }, 2, 0,
        [](Vec& x, double g, int) {
          x[1] = 0.9 * x[1] + 0.1 * g * g;
          x[2] = 0.5 * x[2] + 0.1 * g / std::sqrt(x[1] + 1e-2);
          x[0] -= x[2];
        });
  check([=](auto& v, const Tensor& g, int) { training::apply_centered_rms_prop(v[0], v[1], v[2], v[3], step, g); }, 3,
        0,
        [](Vec& x, double g, int) {
          x[1] = 0.9 * x[1] + 0.1 * g;
          x[2] = 0.9 * x[2] + 0.1 * g * g;
          x[3] = 0.5 * x[3] + 0.1 * g / std::sqrt(x[2] - x[1] * x[1] + 1e-2);
          x[0] -= x[3];
        });
}

TEST(Training, AdagradAndAdadelta) {
  check([](auto& v, const Tensor& g, int) { training::apply_adagrad(v[0], v[1], 0.1, 1e-3, g); }, 1, 0.5,
        [](Vec& x, double g, int) {
          x[1] += g * g;
          x[0] -= 0.1 * g / (std::sqrt(x[1]) + 1e-3);
        });
  check([](auto& v, const Tensor& g, int) { training::apply_adadelta(v[0], v[1], v[2], 0.5, 0.9, 1e-2, g); }, 2, 0,
        [](Vec& x, double g, int) {
          x[1] = 0.9 * x[1] + 0.1 * g * g;
          const double update = std::sqrt(x[2] + 1e-2) / std::sqrt(x[1] + 1e-2) * g;
          x[2] = 0.9 * x[2] + 0.1 * update * update;
          x[0] -= 0.5 * update;
        });
}

TEST(Training, Ftrl) {
  const training::FtrlStep step{.lr = 0.1, .l1 = 0.01, .l2 = 0.02, .l2_shrinkage = 0.03, .lr_power = -0.5};
  check([=](auto& v, const Tensor& g, int) { training::apply_ftrl(v[0], v[1], v[2], step, g); }, 2, 0.5,
        [](Vec& x, double g, int) {
          const double shrunk = g + 2 * 0.03 * x[0];
          const double accum = x[1] + g * g;
          x[2] += shrunk - (std::sqrt(accum) - std::sqrt(x[1])) / 0.1 * x[0];
          const double quadratic = std::sqrt(accum) / 0.1 + 2 * 0.02;
          x[0] = std::abs(x[2]) > 0.01 ? ((x[2] > 0 ? 0.01 : -0.01) - x[2]) / quadratic : 0;
          x[1] = accum;
        });
}

// Rows: an update by IndexedSlices (with a row named twice) equals the dense one wherever the rule leaves a row with
// zero gradient alone.
TEST(Training, RowsEqualDenseWhereZeroGradientsDoNothing) {
  const IndexedSlices slices{Tensor{{1.f, 2.f}, {0.5f, 0.5f}, {1.f, 1.f}}, Tensor{2, 0, 2}, Tensor{3, 2}};
  const Tensor dense{{0.5f, 0.5f}, {0.f, 0.f}, {2.f, 3.f}};
  auto compare = [&](const std::function<void(const std::vector<Variable>&, const Gradient&)>& apply, float start) {
    std::vector<std::vector<Variable>> both;
    for (int i = 0; i < 2; ++i) {
      std::vector<Variable> v{Variable(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}})};
      for (int s = 0; s < 3; ++s) v.emplace_back(fill({3, 2}, start));
      apply(v, i == 0 ? Gradient(slices) : Gradient(dense));
      both.push_back(v);
    }
    for (size_t s = 0; s < 4; ++s) {
      const auto rows = both[0][s].value().to_vector<float>();
      const auto whole = both[1][s].value().to_vector<float>();
      for (size_t k = 0; k < rows.size(); ++k) EXPECT_NEAR(rows[k], whole[k], 1e-5) << "slot " << s << " element " << k;
    }
  };
  compare([](auto& v, const Gradient& g) { training::apply_gradient_descent(v[0], 0.1, g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_momentum(v[0], v[1], {0.1, 0.9}, g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_keras_momentum(v[0], v[1], {0.1, 0.9}, g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_rms_prop(v[0], v[1], v[2], {}, g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_centered_rms_prop(v[0], v[1], v[2], v[3], {}, g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_adagrad(v[0], v[1], 0.1, 1e-7, g); }, 0.1f);
  compare([](auto& v, const Gradient& g) { training::apply_adadelta(v[0], v[1], v[2], 0.1, 0.9, 1e-7, g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_adam(v[0], v[1], v[2], adam_at(1), g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_adamax(v[0], v[1], v[2], adam_at(1), g); }, 0);
  compare([](auto& v, const Gradient& g) { training::apply_adam_with_amsgrad(v[0], v[1], v[2], v[3], adam_at(1), g); },
          0);
}

// The slot then holds lr times what it held, and the variable ends at the same place.
TEST(Training, FtrlWithItsSlotTimesTheRate) {
  const auto updated = [](bool times) {
    const Variable v(Tensor{1.f, -1.f, 0.5f}), accum(Tensor{0.1f, 0.1f, 0.1f}), linear(Tensor{0.f, 0.f, 0.f});
    for (const Tensor& g : {Tensor{0.5f, -2.f, 0.f}, Tensor{0.25f, 1.f, -0.75f}}) {
      call_op("ResourceApplyFtrlV2",
              {v.handle(), accum.handle(), linear.handle(), g, Tensor(0.5f), Tensor(0.01f), Tensor(0.02f),
               Tensor(0.03f), Tensor(-0.5f)},
              {{"multiply_linear_by_lr", times}});
    }
    return std::pair(v.value().to_vector<float>(), linear.value().to_vector<float>());
  };
  const auto [plain, linear] = updated(false);
  const auto [same, halved] = updated(true);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(same[i], plain[i], 1e-5) << i;
    EXPECT_NEAR(halved[i], linear[i] / 2, 1e-5) << i;
  }
}

// Ftrl works a row out anew from its slots whatever the gradient: only the named rows can equal the dense update, and
// the others must stay as they were.
TEST(Training, FtrlChangesTheNamedRowsOnly) {
  const IndexedSlices slices{Tensor{{1.f, 2.f}, {0.5f, 0.5f}, {1.f, 1.f}}, Tensor{2, 0, 2}, Tensor{3, 2}};
  const Tensor dense{{0.5f, 0.5f}, {0.f, 0.f}, {2.f, 3.f}};
  auto updated = [](const Gradient& g) {
    std::vector<Variable> v{Variable(Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}), Variable(fill({3, 2}, 0.1f)),
                            Variable(fill({3, 2}, 0.1f))};
    training::apply_ftrl(v[0], v[1], v[2], {.lr = 0.1}, g);
    return v;
  };
  const auto rows = updated(slices);
  const auto whole = updated(dense);
  for (size_t s = 0; s < 3; ++s) {
    const auto a = rows[s].value().to_vector<float>();
    const auto b = whole[s].value().to_vector<float>();
    for (size_t k : {0, 1, 4, 5}) EXPECT_NEAR(a[k], b[k], 1e-5) << "slot " << s << " element " << k;
    const std::vector<float> before = s == 0 ? std::vector<float>{3.f, 4.f} : std::vector<float>{0.1f, 0.1f};
    EXPECT_EQ((std::vector<float>{a[2], a[3]}), before) << "slot " << s;
  }
}

TEST(Training, SameBitsWithAnyNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    random::set_seed(1);
    Variable w(random::normal({300, 1001}));
    Variable m(zeros({300, 1001})), v(zeros({300, 1001}));
    training::apply_adam(w, m, v, adam_at(1), random::normal({300, 1001}));
    results.push_back(w.value().to_vector<float>());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Training, Errors) {
  Variable w(Tensor{1.f, 2.f}, {.name = "w"}), m(zeros({3})), v(zeros({2}));
  auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([&] { training::apply_gradient_descent(w, 0.1, Tensor{1.f}); }),
              HasSubstr("[ResourceApplyGradientDescent] Variable 'w' has shape [2], the gradient [1]"));
  EXPECT_THAT(message([&] { training::apply_momentum(w, m, {}, Tensor{1.f, 1.f}); }), HasSubstr("its slot"));
  EXPECT_THAT(message([&] { training::apply_momentum(w, w, {}, Tensor{1.f, 1.f}); }), HasSubstr("different variables"));
  EXPECT_THAT(message([&] { training::apply_momentum(w, v, {}, Gradient()); }), HasSubstr("no gradient"));
  EXPECT_THAT(message([&] {
                training::apply_momentum(w, v, {}, IndexedSlices{Tensor{1.f}, Tensor{2}, Tensor{2}});
              }),
              HasSubstr("index 2 is outside Variable 'w' of shape [2]"));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1.f, 2.f}));  // nothing was changed
}

// Numbers that are not finite: expected values by TensorFlow 2.15.
TEST(Training, NumbersThatAreNotFinite) {
  const auto expect = [](const Variable& v, const std::vector<float>& expected) {
    const auto values = v.value().to_vector<float>();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(values[i])
                                          : std::abs(values[i] - expected[i]) < 1e-6 || values[i] == expected[i])
          << i << ": " << values[i] << ", not " << expected[i];
    }
  };
  const Tensor grad{1.f, INFINITY, NAN}, start{1.f, 2.f, 3.f};
  {
    Variable w(start), m(start);
    training::apply_momentum(w, m, {.lr = 1, .momentum = 0.5}, grad);
    expect(w, {-0.5, -INFINITY, NAN});
  }
  {
    Variable w(start), accum(start), linear(start);
    const training::FtrlStep step{.lr = 1, .l1 = 1, .l2 = 1, .lr_power = -0.5};
    training::apply_ftrl(w, accum, linear, step, grad);
    expect(w, {-0.17157288, 0, 0});
    Variable x(start), a(start), l(start);
    training::apply_ftrl(x, a, l, step, IndexedSlices{grad, Tensor{0, 1, 2}, Tensor{3}});
    expect(x, {-0.17157288, NAN, NAN});
    EXPECT_THROW(training::apply_ftrl(x, a, l, {.lr = 0}, IndexedSlices{grad, Tensor{0, 1, 2}, Tensor{3}}), Error);
  }
}

TEST(Training, RowsOfVariablesWhoseValuesSomebodyHolds) {
  const Variable v(zeros({4, 2}));
  const Variable m(zeros({4, 2}));
  const Tensor before = v.value();
  const Tensor slot_before = m.value();
  const IndexedSlices rows{Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{1, 3}, Tensor{4, 2}};
  training::apply_momentum(v, m, {.lr = 0.5}, rows);
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{0, 0, -0.5, -1, 0, 0, -1.5, -2}));
  EXPECT_EQ(m.value().to_vector<float>(), (std::vector<float>{0, 0, 1, 2, 0, 0, 3, 4}));
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(8, 0));
  EXPECT_EQ(slot_before.to_vector<float>(), std::vector<float>(8, 0));
}

}  // namespace
}  // namespace runnel
