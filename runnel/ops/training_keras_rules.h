#pragma once

// Update rules of Keras's optimizers that TensorFlow has no op for, in the form of training_rules.h. Their ops are
// ours; `decompose` says the same in ops that TensorFlow has.
#include <vector>

#include "runnel/ops/training_rules.h"
#include "runnel/tensor/tensor.h"

namespace runnel::rules {

struct KerasRMSprop {
  using Attrs = LockAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"velocity"};
  static constexpr std::array scalars{"lr", "rho", "epsilon"};
  static constexpr int grad_after = 3;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "velocity += (grad^2 - velocity) * (1 - rho); var -= lr * grad / sqrt(velocity + epsilon).";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [lr = h[0], c = C(1) - h[1], eps = h[2]](C* x, C g) {
      x[1] += (g * g - x[1]) * c;
      x[0] -= g * lr / std::sqrt(x[1] + eps);
    };
  }
  static void decompose(const std::vector<Tensor>& in);
};

struct KerasCenteredRMSprop {
  using Attrs = LockAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"velocity", "average_gradient"};
  static constexpr std::array scalars{"lr", "rho", "epsilon"};
  static constexpr int grad_after = 3;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "KerasRMSprop that divides by the estimated standard deviation: velocity - average_gradient^2.";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [lr = h[0], c = C(1) - h[1], eps = h[2]](C* x, C g) {
      x[1] += (g * g - x[1]) * c;
      x[2] += (g - x[2]) * c;
      x[0] -= g * lr / std::sqrt(x[1] - x[2] * x[2] + eps);
    };
  }
  static void decompose(const std::vector<Tensor>& in);
};

struct KerasAdagrad {
  using Attrs = LockAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"accumulator"};
  static constexpr std::array scalars{"lr", "epsilon"};
  static constexpr int grad_after = 2;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc = "accumulator += grad^2; var -= lr * grad / sqrt(accumulator + epsilon).";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [lr = h[0], eps = h[1]](C* x, C g) {
      x[1] += g * g;
      x[0] -= g * lr / std::sqrt(x[1] + eps);
    };
  }
  static void decompose(const std::vector<Tensor>& in);
};

struct KerasNadam {
  using Attrs = LockAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"m", "v"};
  static constexpr std::array scalars{"m_rate", "grad_rate", "beta2_power", "beta1", "beta2", "epsilon"};
  static constexpr int grad_after = 6;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "m += (grad - m) * (1 - beta1); v += (grad^2 - v) * (1 - beta2); "
      "var -= (m_rate * m + grad_rate * grad) / (sqrt(v / (1 - beta2_power)) + epsilon).";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [m_rate = h[0], g_rate = h[1], scale = C(1) / (C(1) - h[2]), c1 = C(1) - h[3], c2 = C(1) - h[4], eps = h[5]](
               C* x, C g) {
      x[1] += (g - x[1]) * c1;
      x[2] += (g * g - x[2]) * c2;
      x[0] -= (x[1] * m_rate + g * g_rate) / (std::sqrt(x[2] * scale) + eps);
    };
  }
  static void decompose(const std::vector<Tensor>& in);
};

}  // namespace runnel::rules
