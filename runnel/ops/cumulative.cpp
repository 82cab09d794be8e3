// Running sums, products and log-sum-exps along an axis.
#include "runnel/ops/cumulative.h"

#include <cmath>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/scan.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

struct ScanAttrs {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields() {
    return field_list(field("exclusive", &ScanAttrs::exclusive), field("reverse", &ScanAttrs::reverse));
  }
};

constexpr auto scan_shape = [](InferContext& c, const ScanAttrs&) {
  c.require_rank(1, 0);
  const auto axis = c.constant_ints(1);
  if (axis && c.input(0).has_rank()) normalize_axis((*axis)[0], c.input(0).rank());
  c.output(c.input(0));
};

struct AddStep {
  template <class C>
  C operator()(C a, C x) const {
    return static_cast<C>(wrapping(a) + wrapping(x));
  }
};
struct MultiplyStep {
  template <class C>
  C operator()(C a, C x) const {
    return static_cast<C>(wrapping(a) * wrapping(x));
  }
};
// log(exp(a) + exp(x)).
struct LogAddStep {
  template <class C>
  C operator()(C a, C x) const {
    const C high = std::max(a, x);
    const C low = std::min(a, x);
    if (a != a || x != x) return a + x;
    return std::isinf(high) || std::isinf(low) ? high : high + std::log1p(std::exp(low - high));
  }
};

template <class Step, class T>
void scan_kernel(KernelContext& c, const ScanAttrs& a, cpu::compute_t<T> identity) {
  const Shape& s = c.in(0).shape();
  const int axis = normalize_axis(c.int_scalar(1), s.rank());
  cpu::ScanShape scan{1, s[axis], 1, a.exclusive, a.reverse};
  for (int i = 0; i < axis; ++i) scan.outer *= s[i];
  for (int i = axis + 1; i < s.rank(); ++i) scan.inner *= s[i];
  cpu::scan<Step>(scan, c.in<T>(0), identity, c.out<T>());
}

// dx_i sums dy_j times the product of the others up to j, over the j that saw x_i. With zeros taken as ones, that
// product is P_j / x_i where no other zero was seen, and 0 elsewhere; how many were seen is counted.
Tensor cumprod_grad(const Tensor& x, const Tensor& dy, const Tensor& axis, const ScanAttrs& a) {
  const Tensor is_zero = equal(x, zeros_like(x));
  const Tensor nonzero = where(is_zero, ones_like(x), x);
  const Tensor seen = cumsum(cast(is_zero, DType::int32), axis, a.exclusive, a.reverse);
  const Tensor weighted = dy * conj(math::cumprod(nonzero, axis, a.exclusive, a.reverse));
  auto sum_where_seen = [&](int zeros) {
    return cumsum(where(equal(seen, zeros), weighted, zeros_like(weighted)), axis, a.exclusive, !a.reverse);
  };
  return where(is_zero, sum_where_seen(1), sum_where_seen(0) / conj(nonzero));
}

Tensor log_scan(const Tensor& x, const Tensor& axis, bool exclusive, bool reverse) {
  return math::cumulative_logsumexp(x, axis, exclusive, reverse);
}

}  // namespace

void register_cumulative(Registry& r) {
  r.define<ScanAttrs>("Cumsum")
      .in("x", numbers)
      .in_host("axis", "Tidx")
      .out("out")
      .shape(scan_shape)
      .cpu([]<class T>(KernelContext& c, const ScanAttrs& a) { scan_kernel<AddStep, T>(c, a, cpu::compute_t<T>(0)); })
      .grad([](const GradCtx& g, const ScanAttrs& a) {
        return Gradients{cumsum(g.dy(), g.x(1), a.exclusive, !a.reverse), {}};
      })
      .doc("Running sums along an axis.")
      .sample({.in = {Tensor{1.f, 2.f, 4.f}, Tensor(0)}, .out = {Tensor{1.f, 3.f, 7.f}}})
      .sample({.in = {Tensor{{1.f, 2.f, 4.f}, {5.f, 6.f, 7.f}}, Tensor(-1)},
               .out = {Tensor{{6.f, 4.f, 0.f}, {13.f, 7.f, 0.f}}}},
              {.exclusive = true, .reverse = true})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor(0)}, .out = {Tensor{{0.f, 0.f}, {1.f, 2.f}}}},
              {.exclusive = true})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(1)}, .error = "out of range"});

  r.define<ScanAttrs>("Cumprod")
      .in("x", numbers)
      .in_host("axis", "Tidx")
      .out("out")
      .shape(scan_shape)
      .cpu([]<class T>(KernelContext& c, const ScanAttrs& a) {
        scan_kernel<MultiplyStep, T>(c, a, cpu::compute_t<T>(1));
      })
      .grad([](const GradCtx& g, const ScanAttrs& a) {
        return Gradients{cumprod_grad(g.x(0), g.dy(), g.x(1), a), {}};
      })
      .doc("Running products along an axis.")
      .sample({.in = {Tensor{1.f, 2.f, 4.f}, Tensor(0)}, .out = {Tensor{1.f, 2.f, 8.f}}})
      .sample({.in = {Tensor{{1.f, 2.f, 4.f}, {5.f, 6.f, 7.f}}, Tensor(-1)},
               .out = {Tensor{{8.f, 4.f, 1.f}, {42.f, 7.f, 1.f}}}},
              {.exclusive = true, .reverse = true})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(-2)}, .error = "out of range"});

  r.define<ScanAttrs>("CumulativeLogsumexp")
      .in("x", floating)
      .in_host("axis", "Tidx")
      .out("out")
      .shape(scan_shape)
      .cpu([]<class T>(KernelContext& c, const ScanAttrs& a) {
        scan_kernel<LogAddStep, T>(c, a, -std::numeric_limits<cpu::compute_t<T>>::infinity());
      })
      .grad([](const GradCtx& g, const ScanAttrs& a) {
        // dx_i = exp(x_i) * sum of dy_j / exp(y_j) over the j that saw x_i, in logarithms, the signs of dy apart.
        const Tensor dy = g.dy();
        const Tensor lowest = ones_like(dy) * -std::numeric_limits<double>::infinity();
        auto part = [&](const Tensor& positive) {
          const Tensor seen = positive > 0;
          const Tensor logs = where(seen, log(where(seen, positive, ones_like(dy))) - g.y(), lowest);
          return exp(log_scan(logs, g.x(1), a.exclusive, !a.reverse) + g.x(0));
        };
        return Gradients{part(dy) - part(-dy), {}};
      })
      .doc("Running log(sum(exp(x))) along an axis.")
      .sample({.in = {Tensor{0.f, 0.f, 0.f}, Tensor(0)}, .out = {Tensor{0.f, 0.6931472f, 1.0986123f}}})
      .sample(
          {.in = {Tensor{{1.f, 2.f}, {100.f, -100.f}}, Tensor(1)}, .out = {Tensor{{2.3132617f, 2.f}, {100.f, -100.f}}}},
          {.reverse = true})
      .sample({.in = {Tensor{1.f, 1.f}, Tensor(0)}, .out = {Tensor{-INFINITY, 1.f}}, .differentiable = false},
              {.exclusive = true});
}

Tensor cumsum(const Operand& x, const Operand& axis, bool exclusive, bool reverse) {
  static const Op<ScanAttrs> op("Cumsum");
  return op({x, axis}, {.exclusive = exclusive, .reverse = reverse});
}
namespace math {
Tensor cumprod(const Operand& x, const Operand& axis, bool exclusive, bool reverse) {
  static const Op<ScanAttrs> op("Cumprod");
  return op({x, axis}, {.exclusive = exclusive, .reverse = reverse});
}
Tensor cumulative_logsumexp(const Operand& x, const Operand& axis, bool exclusive, bool reverse) {
  static const Op<ScanAttrs> op("CumulativeLogsumexp");
  return op({x, axis}, {.exclusive = exclusive, .reverse = reverse});
}
}  // namespace math

}  // namespace runnel
