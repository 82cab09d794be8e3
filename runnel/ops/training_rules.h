#pragma once

// The update rules of TensorFlow's optimizer ops, one element at a time. A rule names its slots, where the op has
// the gradient and the scalar inputs, which types the variable may have, and prepares a step: step(x, g) changes x[0]
// (the variable) and x[1], ... (its slots) for the gradient element g. C is the type computed in.
#include <array>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/op/attr.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::rules {

struct LockAttrs {
  bool use_locking = false;
  static constexpr auto fields() { return field_list(field("use_locking", &LockAttrs::use_locking)); }
};
struct NesterovAttrs {
  bool use_locking = false;
  bool use_nesterov = false;
  static constexpr auto fields() {
    return field_list(field("use_locking", &NesterovAttrs::use_locking),
                      field("use_nesterov", &NesterovAttrs::use_nesterov));
  }
};
struct SlotAttrs {
  bool use_locking = false;
  bool update_slots = true;
  static constexpr auto fields() {
    return field_list(field("use_locking", &SlotAttrs::use_locking), field("update_slots", &SlotAttrs::update_slots));
  }
};

struct FtrlAttrs {
  bool use_locking = false;
  bool multiply_linear_by_lr = false;  // then `linear` holds lr times what it held
  static constexpr auto fields() {
    return field_list(field("use_locking", &FtrlAttrs::use_locking),
                      field("multiply_linear_by_lr", &FtrlAttrs::multiply_linear_by_lr));
  }
};

struct GradientDescent {
  using Attrs = LockAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array<const char*, 0> slots{};
  static constexpr std::array scalars{"alpha"};
  static constexpr int grad_after = 1;  // the gradient follows this many scalars
  static constexpr const char* grad = "delta";
  static constexpr const char* doc = "var -= alpha * delta.";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [alpha = h[0]](C* x, C g) { x[0] -= g * alpha; };
  }
};

struct Momentum {
  using Attrs = NesterovAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"accum"};
  static constexpr std::array scalars{"lr", "momentum"};
  static constexpr int grad_after = 1;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "accum = momentum * accum + grad; var -= lr * accum (Nesterov's look-ahead on demand).";
  template <class C>
  static auto prepare(const C* h, const Attrs& a) {
    const C of_accum = a.use_nesterov ? h[1] * h[0] : h[0];
    return [lr = h[0], momentum = h[1], of_accum, nesterov = a.use_nesterov](C* x, C g) {
      x[1] = x[1] * momentum + g;
      x[0] -= (nesterov ? g * lr : C(0)) + x[1] * of_accum;
    };
  }
};

struct KerasMomentum {
  using Attrs = NesterovAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"accum"};
  static constexpr std::array scalars{"lr", "momentum"};
  static constexpr int grad_after = 1;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "accum = momentum * accum - lr * grad; var += accum (Nesterov's look-ahead on demand).";
  template <class C>
  static auto prepare(const C* h, const Attrs& a) {
    const C of_accum = a.use_nesterov ? h[1] : C(1);
    return [lr = h[0], momentum = h[1], of_accum, nesterov = a.use_nesterov](C* x, C g) {
      x[1] = x[1] * momentum - g * lr;
      x[0] += x[1] * of_accum - (nesterov ? g * lr : C(0));
    };
  }
};

struct Adam {
  using Attrs = NesterovAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"m", "v"};
  static constexpr std::array scalars{"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"};
  static constexpr int grad_after = 6;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "m += (grad - m) * (1 - beta1); v += (grad^2 - v) * (1 - beta2); "
      "var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon).";
  template <class C>
  static auto prepare(const C* h, const Attrs& a) {
    const C alpha = h[2] * std::sqrt(C(1) - h[1]) / (C(1) - h[0]);
    const C c1 = C(1) - h[3];
    // Nesterov's m is one with other factors: a choice inside would keep the loop from becoming vectors.
    const C of_m = a.use_nesterov ? h[3] : C(1), of_g = a.use_nesterov ? c1 : C(0);
    return [alpha, c1, c2 = C(1) - h[4], eps = h[5], of_m, of_g](C* x, C g) {
      x[1] += (g - x[1]) * c1;
      x[2] += (g * g - x[2]) * c2;
      x[0] -= (of_g * g + of_m * x[1]) * alpha / (std::sqrt(x[2]) + eps);
    };
  }
};

struct AdamWithAmsgrad {
  using Attrs = LockAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"m", "v", "vhat"};
  static constexpr std::array scalars{"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"};
  static constexpr int grad_after = 6;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc = "Adam that divides by the largest v so far (vhat).";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    const C alpha = h[2] * std::sqrt(C(1) - h[1]) / (C(1) - h[0]);
    return [alpha, c1 = C(1) - h[3], c2 = C(1) - h[4], eps = h[5]](C* x, C g) {
      x[1] += (g - x[1]) * c1;
      x[2] += (g * g - x[2]) * c2;
      x[3] = x[3] < x[2] ? x[2] : x[3];  // a NaN in v is passed over, as in TensorFlow
      x[0] -= x[1] * alpha / (std::sqrt(x[3]) + eps);
    };
  }
};

struct RMSProp {
  using Attrs = LockAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"ms", "mom"};
  static constexpr std::array scalars{"lr", "rho", "momentum", "epsilon"};
  static constexpr int grad_after = 4;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "ms += (grad^2 - ms) * (1 - rho); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom.";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [lr = h[0], c = C(1) - h[1], momentum = h[2], eps = h[3]](C* x, C g) {
      x[1] += (g * g - x[1]) * c;
      x[2] = x[2] * momentum + g * lr / std::sqrt(x[1] + eps);
      x[0] -= x[2];
    };
  }
};

struct CenteredRMSProp {
  using Attrs = LockAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"mg", "ms", "mom"};
  static constexpr std::array scalars{"lr", "rho", "momentum", "epsilon"};
  static constexpr int grad_after = 4;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc = "RMSProp that divides by the estimated standard deviation: ms - mg^2.";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [lr = h[0], c = C(1) - h[1], momentum = h[2], eps = h[3]](C* x, C g) {
      x[2] += (g * g - x[2]) * c;
      x[1] += (g - x[1]) * c;
      x[3] = x[3] * momentum + g * lr / std::sqrt(x[2] - x[1] * x[1] + eps);
      x[0] -= x[3];
    };
  }
};

struct Adagrad {
  using Attrs = SlotAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"accum"};
  static constexpr std::array scalars{"lr"};
  static constexpr int grad_after = 1;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc = "accum += grad^2; var -= lr * grad / sqrt(accum).";
  template <class C>
  static auto prepare(const C* h, const Attrs& a) {
    return [lr = h[0], update = a.update_slots](C* x, C g) {
      x[1] += update ? g * g : C(0);
      x[0] -= g * lr / std::sqrt(x[1]);
    };
  }
};

struct AdagradV2 {
  using Attrs = SlotAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"accum"};
  static constexpr std::array scalars{"lr", "epsilon"};
  static constexpr int grad_after = 2;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc = "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon).";
  template <class C>
  static auto prepare(const C* h, const Attrs& a) {
    return [lr = h[0], eps = h[1], update = a.update_slots](C* x, C g) {
      x[1] += update ? g * g : C(0);
      x[0] -= g * lr / (std::sqrt(x[1]) + eps);
    };
  }
};

struct Adadelta {
  using Attrs = LockAttrs;
  static constexpr auto types = floating_or_complex;
  static constexpr std::array slots{"accum", "accum_update"};
  static constexpr std::array scalars{"lr", "rho", "epsilon"};
  static constexpr int grad_after = 3;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "accum = rho * accum + (1 - rho) * grad^2; update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad; "
      "accum_update = rho * accum_update + (1 - rho) * update^2; var -= lr * update.";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [lr = h[0], rho = h[1], c = C(1) - h[1], eps = h[2]](C* x, C g) {
      x[1] = x[1] * rho + g * g * c;
      const C update = std::sqrt(x[2] + eps) / std::sqrt(x[1] + eps) * g;
      x[2] = x[2] * rho + update * update * c;
      x[0] -= update * lr;
    };
  }
};

struct AdaMax {
  using Attrs = LockAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"m", "v"};
  static constexpr std::array scalars{"beta1_power", "lr", "beta1", "beta2", "epsilon"};
  static constexpr int grad_after = 5;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "m += (grad - m) * (1 - beta1); v = max(beta2 * v, |grad|); var -= lr / (1 - beta1_power) * m / (v + epsilon).";
  template <class C>
  static auto prepare(const C* h, const Attrs&) {
    return [alpha = h[1] / (C(1) - h[0]), c1 = C(1) - h[2], b2 = h[3], eps = h[4]](C* x, C g) {
      x[1] += (g - x[1]) * c1;
      const C old = x[2] * b2;
      const C now = std::abs(g);
      x[2] = old < now ? now : old;  // a NaN gradient is passed over, as in TensorFlow
      x[0] -= alpha * x[1] / (x[2] + eps);
    };
  }
};

// The op for rows checks its scalars, and bounds by l1 where the dense one chooses: they differ for NaN.
template <bool with_shrinkage, bool rows = false>
struct FtrlRule {
  using Attrs = FtrlAttrs;
  static constexpr auto types = floating;
  static constexpr std::array slots{"accum", "linear"};
  static constexpr auto scalars = [] {
    if constexpr (with_shrinkage) {
      return std::array{"lr", "l1", "l2", "l2_shrinkage", "lr_power"};
    } else {
      return std::array{"lr", "l1", "l2", "lr_power"};
    }
  }();
  static constexpr int grad_after = 0;
  static constexpr const char* grad = "grad";
  static constexpr const char* doc =
      "Follow the regularised leader: accum += grad^2; linear += grad - (accum_new^-lr_power - accum^-lr_power) / lr "
      "* var; var minimises the regularised sum.";
  template <class C>
  static auto prepare(const C* h, const Attrs& a) {
    const C shrinkage = with_shrinkage ? h[3] : C(0);
    const C power = with_shrinkage ? h[4] : h[3];
    if constexpr (rows) {
      if (!(h[0] > C(0))) throw invalid_argument("lr must be positive, got {}", h[0]);
      if (!(h[1] >= C(0)) || !(h[2] >= C(0)) || !(shrinkage >= C(0))) {
        throw invalid_argument("l1, l2 and l2_shrinkage must not be negative, got {}, {} and {}", h[1], h[2],
                               shrinkage);
      }
      if (!(power <= C(0))) throw invalid_argument("lr_power must not be positive, got {}", power);
    }
    const C times = a.multiply_linear_by_lr ? h[0] : C(1), by = a.multiply_linear_by_lr ? C(1) : h[0];
    return [times, by, l1 = h[1] * times, l2 = h[2] * times, shrinkage, power](C* x, C g) {
      const C shrunk = (g + C(2) * shrinkage * x[0]) * times;
      const C accum = x[1] + g * g;
      const C new_power = std::pow(accum, -power);
      const C sigma = (new_power - std::pow(x[1], -power)) / by;
      x[2] += shrunk - sigma * x[0];
      const C quadratic = new_power / by + C(2) * l2;
      if constexpr (rows) {
        const C bounded = x[2] > l1 ? l1 : x[2] < -l1 ? -l1 : x[2];
        x[0] = (bounded - x[2]) / quadratic;
      } else {
        x[0] = std::abs(x[2]) > l1 ? ((x[2] > C(0) ? l1 : -l1) - x[2]) / quadratic : C(0);
      }
      x[1] = accum;
    };
  }
};
using Ftrl = FtrlRule<false>;
using FtrlV2 = FtrlRule<true>;
using SparseFtrl = FtrlRule<false, true>;
using SparseFtrlV2 = FtrlRule<true, true>;

}  // namespace runnel::rules
