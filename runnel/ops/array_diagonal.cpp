// Diagonals of tensors whose dimensions come twice; cross products; checks of numbers.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/control.h"
#include "runnel/ops/linalg.h"
#include "runnel/ops/math.h"
#include "runnel/ops/partition.h"

namespace runnel {
namespace {

inline constexpr auto diagonal_types = floating + index_types + complexes;

struct CheckAttrs {
  std::string message;
  static constexpr auto fields() { return field_list(field("message", &CheckAttrs::message, {.required = true})); }
};

template <class T>
void check_numbers(KernelContext& c, const CheckAttrs& a) {
  bool nan = false, infinite = false;
  for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
    const auto x = static_cast<double>(c.in<T>(0)[i]);
    nan = nan || std::isnan(x);
    infinite = infinite || std::isinf(x);
  }
  if (!nan && !infinite) return;
  throw invalid_argument("{}: the tensor has {} values", a.message, nan ? (infinite ? "Inf and NaN" : "NaN") : "Inf");
}

// Between a diagonal of n elements and the n x n elements of the whole.
void move_diagonal(KernelContext& c, bool take) {
  const Tensor &from = c.in(0), &to = c.out();
  const int64_t n = take ? to.num_elements() : from.num_elements();
  cpu::with_element(to.dtype(), [&]<class E>() {
    E* y = to.mutable_data<E>();
    if (!take) std::fill(y, y + n * n, E{});
    for (int64_t i = 0; i < n; ++i) y[take ? i : i * (n + 1)] = from.data<E>()[take ? i * (n + 1) : i];
  });
}

}  // namespace

void register_array_diagonal(Registry& r) {
  r.define("Diag")
      .in("diagonal", diagonal_types)
      .out("output")
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 1);
        const PartialShape& d = c.input(0);
        if (!d.has_rank()) return c.output(d);
        Dims dims = d.dims();
        dims.insert(dims.end(), d.begin(), d.end());
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c) { move_diagonal(c, false); })
      .grad([](const GradCtx& g) { return tensor_diag_part(g.dy()); })
      .grad_reads({})
      .doc("A tensor with the dimensions of the diagonal twice, zero outside of it.")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{{1.f, 0.f}, {0.f, 2.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}}, .out = {Tensor::of<float>({1, 0, 0, 2}, Shape{1, 2, 1, 2})}})
      .sample({.in = {Tensor(1.f)}, .error = "rank"});

  r.define("DiagPart")
      .in("input", diagonal_types)
      .out("diagonal")
      .shape([](InferContext& c) {
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(x);
        const int half = x.rank() / 2;
        if (x.rank() % 2 != 0) throw invalid_argument("the rank must be even, got shape {}", x.str());
        const PartialShape first(Dims(x.begin(), x.begin() + half)), second(Dims(x.begin() + half, x.end()));
        if (!first.compatible_with(second)) {
          throw invalid_argument("the dimensions must come twice, got shape {}", x.str());
        }
        c.output(first.merged_with(second));
      })
      .cpu([](KernelContext& c) { move_diagonal(c, true); })
      .grad([](const GradCtx& g) { return tensor_diag(g.dy()); })
      .grad_reads({})
      .doc("The elements whose first and second half of the indices are the same.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor{1.f, 4.f}}})
      .sample({.in = {Tensor::of<float>({1, 2, 3, 4}, Shape{1, 2, 1, 2})}, .out = {Tensor{{1.f, 4.f}}}})
      .sample({.in = {Tensor{1.f, 4.f}}, .error = "must be even"})
      .sample({.in = {Tensor{{1.f, 4.f}}}, .error = "must come twice"});

  r.define("Cross")
      .in("a", real_numbers)
      .in("b")
      .out("product")
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 1);
        const PartialShape both = c.input(0).merged_with(c.input(1));
        if (both.has_rank() && both[both.rank() - 1] >= 0 && both[both.rank() - 1] != 3) {
          throw invalid_argument("the last dimension must have 3 elements, got {}", both.str());
        }
        c.output(both);
      })
      .cpu([]<class T>(KernelContext& c) {
        const T *a = c.in<T>(0), *b = c.in<T>(1);
        T* y = c.out<T>();
        for (int64_t i = 0; i < c.out().num_elements(); i += 3, a += 3, b += 3, y += 3) {
          for (int k = 0; k < 3; ++k) {
            const int p = (k + 1) % 3, q = (k + 2) % 3;
            y[k] = static_cast<T>(static_cast<T>(a[p] * b[q]) - static_cast<T>(a[q] * b[p]));
          }
        }
      })
      .grad([](const GradCtx& g) {
        return Gradients{g.want(0, [&] { return linalg::cross(g.x(1), g.dy()); }),
                         g.want(1, [&] { return linalg::cross(g.dy(), g.x(0)); })};
      })
      .grad_reads({0, 1})
      .doc("The cross product of vectors of 3 elements, the last dimension.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{4.f, 5.f, 6.f}}, .out = {Tensor{-3.f, 6.f, -3.f}}})
      .sample({.in = {Tensor{{1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}}, Tensor{{0.f, 1.f, 0.f}, {0.f, 0.f, 1.f}}},
               .out = {Tensor{{0.f, 0.f, 1.f}, {1.f, 0.f, 0.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{4.f, 5.f}}, .error = "3 elements"});

  r.define<CheckAttrs>("CheckNumerics")
      .in("tensor", floating)
      .out("output")
      .shape(like<0>)
      .forwards()
      .cpu([]<class T>(KernelContext& c, const CheckAttrs& a) {
        check_numbers<T>(c, a);
        c.forward(0, c.in(0).with_shape(c.in(0).shape()));
      })
      .grad([](const GradCtx& g, const CheckAttrs& a) {
        return debugging::check_numerics(g.dy(), "a gradient of '" + a.message + "'");
      })
      .grad_reads({})
      .stateful()
      .doc("The tensor itself; an error with the message when it has NaN or infinite values.")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}}, {.message = "weights"})
      .sample({.in = {Tensor{1.f, NAN}}, .error = "weights: the tensor has NaN values"}, {.message = "weights"});
}

Tensor tensor_diag(const Operand& diagonal) {
  static const Op op("Diag");
  return op({diagonal});
}
Tensor tensor_diag_part(const Operand& input) {
  static const Op op("DiagPart");
  return op({input});
}
Tensor linalg::cross(const Operand& a, const Operand& b) {
  static const Op op("Cross");
  return op({a, b});
}
Tensor debugging::check_numerics(const Operand& x, const std::string& message) {
  static const Op<CheckAttrs> op("CheckNumerics");
  return op({x}, {.message = message});
}

}  // namespace runnel
