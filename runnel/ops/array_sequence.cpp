// Sequences: range, linspace, one_hot, eye.
#include <cmath>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/kernels/cpu/update_loop.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

inline constexpr auto range_types = floating + Types<int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t>{};

struct OneHotAttrs {
  int64_t axis = -1;
  static constexpr auto fields() { return field_list(field("axis", &OneHotAttrs::axis)); }
};
// y[n, depth, inner]; values as arguments, for a store through y may be to anything that a closure holds.
template <class E, class I>
void fill_one_hot(const I* hot, int64_t n, int64_t depth, int64_t inner, E on, E off, E* y) {
  cpu::fill_run(off, y, n * depth * inner);
  for (int64_t o = 0; o < n; ++o, hot += inner, y += depth * inner) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = static_cast<int64_t>(hot[i]);
      if (at >= 0 && at < depth) y[at * inner + i] = on;
    }
  }
}
template <class E, class I>
void one_hot_matrices(const I* hot, int64_t outer, int64_t depth, int64_t inner, const E& on, const E& off, E* y) {
  constexpr int64_t kTask = 1 << 15, kFilled = 1 << 11;  // elements: of a chunk, and of what the nearest cache holds
  const int64_t matrix = depth * inner, size = std::max<int64_t>(1, matrix);
  const int64_t at_once = std::max<int64_t>(1, kFilled / size);
  parallel_for(outer, std::max<int64_t>(1, kTask / size), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t n = std::min(at_once, end - first);
      fill_one_hot(hot + first * inner, n, depth, inner, on, off, y + first * matrix);
    }
  });
}

template <class T>
int64_t range_count(T start, T limit, T delta) {
  if (delta == T(0)) throw invalid_argument("delta is zero");
  if ((delta > T(0) && start > limit) || (delta < T(0) && start < limit)) {
    throw invalid_argument("delta {} leads away from the limit: start {}, limit {}", double(delta), double(start),
                           double(limit));
  }
  if constexpr (std::is_integral_v<T>) {
    const uint64_t span = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                    : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t pace = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    return static_cast<int64_t>(span / pace + (span % pace != 0));
  } else {
    // Each step is rounded to T, as in TensorFlow: 0.3f is three times 0.1f.
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T span(static_cast<C>(limit) - static_cast<C>(start));
    const double n = std::ceil(std::abs(double(T(static_cast<C>(span) / static_cast<C>(delta)))));
    if (!(n < 9e18)) throw invalid_argument("{} elements are too many", n);
    return static_cast<int64_t>(n);
  }
}

// y[i] = f(i). Numbers that fit have 32 bits, which vectors turn into floats.
template <class T, class F>
void fill_sequence(int64_t n, T* y, const F& f) {
  constexpr int64_t kSequenceGrain = 1 << 15;
  parallel_for(n, kSequenceGrain, [&](int64_t begin, int64_t end) {
    if (end <= std::numeric_limits<int32_t>::max()) {
      cpu::update_range<T>(begin, end, [y, f](int64_t i) { y[i] = f(static_cast<int32_t>(i)); });
    } else {
      cpu::update_range<T>(begin, end, [y, f](int64_t i) { y[i] = f(i); });
    }
  });
}

void range_shape(InferContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 0);
  const Tensor *start = c.constant(0), *limit = c.constant(1), *delta = c.constant(2);
  if (!start || !limit || !delta) return c.output(PartialShape{kUnknownDim});
  int64_t n = 0;
  range_types.for_each([&]<class T>() {
    if (dtype_of<T> == start->dtype()) n = range_count(start->item<T>(), limit->item<T>(), delta->item<T>());
  });
  c.output(PartialShape{n});
}

}  // namespace

void register_array_sequence(Registry& r) {
  r.define("Range")
      .type("Tidx", range_types, DType::int32)
      .in_host("start", "Tidx")
      .in_host("limit", "Tidx")
      .in_host("delta", "Tidx")
      .out("output", "Tidx")
      .shape(range_shape)
      .cpu([]<class T>(KernelContext& c) {
        const T start = *c.in<T>(0), delta = *c.in<T>(2);
        fill_sequence(c.out().num_elements(), c.out<T>(), [=](auto i) {
          if constexpr (std::is_integral_v<T>) {
            using U = std::common_type_t<std::make_unsigned_t<T>, uint32_t>;  // wraps around
            return static_cast<T>(static_cast<U>(start) + static_cast<U>(i) * static_cast<U>(delta));
          } else if constexpr (std::is_same_v<T, double>) {
            return start + static_cast<double>(i) * delta;
          } else {
            return T(static_cast<float>(start) + static_cast<float>(i) * static_cast<float>(delta));
          }
        });
      })
      .not_differentiable()
      .doc("start, start + delta, ... as long as limit is not reached.")
      .sample({.in = {Tensor(2), Tensor(7), Tensor(2)}, .out = {Tensor{2, 4, 6}}})
      .sample({.in = {Tensor(1.f), Tensor(0.f), Tensor(-0.5f)}, .out = {Tensor{1.f, 0.5f}}, .differentiable = false})
      .sample({.in = {Tensor(0), Tensor(3), Tensor(0)}, .error = "delta is zero"})
      .sample({.in = {Tensor(0), Tensor(3), Tensor(-1)}, .error = "leads away from the limit"});

  r.define("LinSpace")
      .in("start", floating)
      .in("stop")
      .in_host("num", "Tidx")
      .out("output")
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        c.require_rank(1, 0);
        c.require_rank(2, 0);
        const auto num = c.constant_ints(2);
        if (num && (*num)[0] < 1) throw invalid_argument("num must be at least 1, got {}", (*num)[0]);
        c.output(PartialShape{num ? (*num)[0] : kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) {
        using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const C start = static_cast<C>(*c.in<T>(0)), stop = static_cast<C>(*c.in<T>(1));
        const int64_t n = c.out().num_elements();
        const C step = n > 1 ? (stop - start) / static_cast<C>(n - 1) : C(0);
        T* y = c.out<T>();
        fill_sequence(n, y, [=](auto i) { return T(start + step * static_cast<C>(i)); });
        y[0] = T(start);  // both ends as they are, also infinite ones
        if (n > 1) y[n - 1] = T(stop);
      })
      .not_differentiable()
      .doc("num values evenly spaced from start to stop, both included.")
      .sample({.in = {Tensor(0.f), Tensor(1.f), Tensor(3)}, .out = {Tensor{0.f, 0.5f, 1.f}}, .differentiable = false})
      .sample({.in = {Tensor(2.f), Tensor(1.f), Tensor(1)}, .out = {Tensor{2.f}}, .differentiable = false})
      .sample(
          {.in = {Tensor(-INFINITY), Tensor(1.f), Tensor(2)}, .out = {Tensor{-INFINITY, 1.f}}, .differentiable = false})
      .sample({.in = {Tensor(2.f), Tensor(1.f), Tensor(0)}, .error = "num must be at least 1"});

  r.define<OneHotAttrs>("OneHot")
      .type("T", all_types)
      .type("TI", Types<uint8_t, int8_t, int32_t, int64_t>{}, DType::int64)
      .in("indices", "TI")
      .in_host("depth", DType::int32)
      .in("on_value", "T")
      .in("off_value", "T")
      .out("output", "T")
      .shape([](InferContext& c, const OneHotAttrs& a) {
        for (int i = 1; i < 4; ++i) c.require_rank(i, 0);
        if (a.axis < -1) throw invalid_argument("axis must be -1 or a dimension of the result, got {}", a.axis);
        const auto depth = c.constant_ints(1);
        if (depth && (*depth)[0] < 0) throw invalid_argument("depth is negative: {}", (*depth)[0]);
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(x);
        Dims dims = x.dims();
        dims.insert(dims.begin() + normalize_axis(a.axis, x.rank() + 1), depth ? (*depth)[0] : kUnknownDim);
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c, const OneHotAttrs& a) {
        const Tensor& x = c.in(0);
        const int axis = normalize_axis(a.axis, x.rank() + 1);
        int64_t outer = 1;
        for (int d = 0; d < axis; ++d) outer *= x.shape()[d];
        const int64_t inner = outer == 0 ? 0 : x.num_elements() / outer;
        const int64_t depth = c.int_scalar(1);
        cpu::with_element(c.out().dtype(), [&]<class E>() {
          E* y = c.out<E>();
          const E on = *c.in<E>(2);
          const E off = *c.in<E>(3);
          Types<uint8_t, int8_t, int32_t, int64_t>::for_each([&]<class I>() {
            if (dtype_of<I> == x.dtype()) one_hot_matrices(x.data<I>(), outer, depth, inner, on, off, y);
          });
        });
      })
      .not_differentiable()
      .doc("on_value where the index along a new axis equals `indices`, off_value elsewhere.")
      .sample({.in = {Tensor{0, 2, -1}, Tensor(3), Tensor(1.f), Tensor(0.f)},
               .out = {Tensor{{1.f, 0.f, 0.f}, {0.f, 0.f, 1.f}, {0.f, 0.f, 0.f}}},
               .differentiable = false})
      .sample({.in = {Tensor{1, 0}, Tensor(3), Tensor(5.f), Tensor(-1.f)},
               .out = {Tensor{{-1.f, 5.f}, {5.f, -1.f}, {-1.f, -1.f}}},
               .differentiable = false},
              {.axis = 0})
      .sample({.in = {Tensor{1, 0}, Tensor(-3), Tensor(5.f), Tensor(-1.f)}, .error = "depth is negative"});
}

Tensor range(const Operand& start, const Operand& limit, const Operand& delta) {
  return composed(start.where(), [&]() -> Tensor {
    static const Op op("Range");
    if (!start.is_literal() || !limit.is_literal() || !delta.is_literal()) return op({start, limit, delta});
    // Literals of several kinds: a real one makes all real.
    DType dtype = DType::int32;
    for (const Operand* o : {&start, &limit, &delta}) {
      const DType t = o->natural_dtype();
      if (t == DType::int64 ? dtype == DType::int32 : t != DType::int32) dtype = t;
    }
    return op({start.as(dtype), limit.as(dtype), delta.as(dtype)}, {}, &start.where());
  });
}
Tensor range(const Operand& limit) {
  const Operand zero(0, limit.where());
  return range(zero, limit, Operand(1, limit.where()));
}

Tensor linspace(const Operand& start, const Operand& stop, const Operand& num, int axis) {
  return composed(start.where(), [&]() -> Tensor {
    static const Op op("LinSpace");
    auto real = [](const Operand& o, const Operand& other) {
      if (!o.is_literal()) return *o.tensor();
      return o.as(other.is_literal() ? DType::float32 : other.tensor()->dtype());
    };
    const Tensor a = real(start, stop), b = real(stop, start);
    const PartialShape shape = broadcast_shapes(a.partial_shape(), b.partial_shape());
    if (shape.rank() == 0) return op({Operand(a, start.where()), b, num});
    if (!shape.has_rank()) throw invalid_argument("[linspace] start and stop need a known rank");
    const int at = normalize_axis(axis, shape.rank() + 1);
    // Weights from 0 to 1 along the new axis: both ends come out exactly.
    const Tensor weight = op({zeros({}, a.dtype()), ones({}, a.dtype()), num});
    Dims along(static_cast<size_t>(shape.rank() + 1), 1);
    along[static_cast<size_t>(at)] = -1;
    const Tensor t = reshape(weight, along);
    auto lifted = [&](const Tensor& x) {
      const PartialShape own = x.partial_shape();
      return expand_dims(
          own.rank() == shape.rank() ? x : broadcast_to(x, shape_arg(a.partial_shape() == shape ? a : b)), at);
    };
    return lifted(a) * (1 - t) + lifted(b) * t;
  });
}

Tensor one_hot(const Operand& indices, const Operand& depth, const Operand& on_value, const Operand& off_value,
               int axis) {
  static const Op<OneHotAttrs> op("OneHot");
  return op({indices, depth, on_value, off_value}, {.axis = axis});
}
Tensor one_hot(const Operand& indices, const Operand& depth, int axis, DType dtype) {
  return composed(indices.where(), [&] { return one_hot(indices, depth, ones({}, dtype), zeros({}, dtype), axis); });
}

Tensor eye(int64_t num_rows, int64_t num_columns, const Shape& batch_shape, DType dtype, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    if (num_rows < 0) throw invalid_argument("[eye] num_rows is negative: {}", num_rows);
    const Tensor one =
        one_hot(range(Operand(num_rows, where)), Operand(num_columns < 0 ? num_rows : num_columns, where), -1, dtype);
    if (batch_shape.rank() == 0) return one;
    Dims dims = batch_shape.dims();
    dims.insert(dims.end(), one.shape().begin(), one.shape().end());
    return broadcast_to(one, dims);
  });
}

}  // namespace runnel
