// Conversions between dtypes.
#include "runnel/kernels/cpu/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

struct CastAttrs {
  DType DstT = DType::invalid;
  bool Truncate = false;
  static constexpr auto fields() {
    return field_list(field("DstT", &CastAttrs::DstT), field("Truncate", &CastAttrs::Truncate));
  }
};

// Bits of the mantissa that a narrower floating type has no room for.
template <class From>
int lost_bits(DType to) {
  const int own = std::numeric_limits<From>::digits;
  switch (to) {
    case DType::float16: return own - std::numeric_limits<Half>::digits;
    case DType::bfloat16: return own - std::numeric_limits<BFloat16>::digits;
    case DType::float32: return own - std::numeric_limits<float>::digits;
    default: return 0;
  }
}

// With `Truncate` the bits that do not fit are cut off, so that the conversion after it rounds nothing.
template <class From>
Tensor without_lost_bits(const Tensor& x, DType to) {
  using Bits = std::conditional_t<sizeof(From) == 8, uint64_t, uint32_t>;
  const Bits mask = ~((Bits{1} << lost_bits<From>(to)) - 1);
  Tensor y = Tensor::empty(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    y.mutable_data<From>()[i] = std::bit_cast<From>(std::bit_cast<Bits>(x.data<From>()[i]) & mask);
  }
  return y;
}

// Converting to a signed or an unsigned integer of one size gives the same bits, except from floating values.
template <class From, class To>
using StoredAs = std::conditional_t<std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>,
                                    std::make_unsigned<To>, std::type_identity<To>>;

template <class From>
void cast_from(KernelContext& c, const CastAttrs& a) {
  Tensor x = c.in(0);
  if (a.DstT == x.dtype()) return c.forward(0, x.with_shape(x.shape()));
  if (!c.out().defined()) c.allocate(0, x.shape());  // a graph has made room for it
  if constexpr (std::is_floating_point_v<From>) {
    if (a.Truncate && lost_bits<From>(a.DstT) > 0) x = without_lost_bits<From>(x, a.DstT);
  }
  bool done = false;
  plain_types.for_each([&]<class To>() {
    if constexpr (!std::is_same_v<From, To>) {
      if (a.DstT != dtype_of<To>) return;
      using Stored = typename StoredAs<From, To>::type;
      if constexpr (std::is_same_v<From, Stored>) {
        std::memcpy(c.out<char>(), x.raw(), x.num_bytes());
      } else {
        cpu::cast_loop(x.data<From>(), c.out<Stored>(), x.num_elements());
      }
      done = true;
    }
  });
  if (!done) throw invalid_argument("cannot cast {} to {}", dtype_name(x.dtype()), dtype_name(a.DstT));
}

struct BitcastAttrs {
  DType type = DType::invalid;
  static constexpr auto fields() { return field_list(field("type", &BitcastAttrs::type, {.types = numbers.mask})); }
};

PartialShape bitcast_shape(const PartialShape& x, DType from, DType to) {
  const auto from_size = static_cast<int64_t>(dtype_size(from));
  const auto to_size = static_cast<int64_t>(dtype_size(to));
  if (from_size == to_size || !x.has_rank()) return x;
  Dims dims = x.dims();
  if (from_size > to_size) {
    dims.push_back(from_size / to_size);
    return PartialShape(dims);
  }
  if (dims.empty() || (dims.back() >= 0 && dims.back() != to_size / from_size)) {
    throw invalid_argument("from {} to {} the last dimension must be {}, got shape {}", dtype_name(from),
                           dtype_name(to), to_size / from_size, x.str());
  }
  dims.pop_back();
  return PartialShape(dims);
}

// The range of a real dtype: of integers exact, of floating types as the largest finite value.
struct Range {
  long double lowest = 0, highest = 0;
};
Range range_of(DType dtype) {
  Range range;
  real_numbers.for_each([&]<class T>() {
    if (dtype_of<T> == dtype) {
      using C = cpu::compute_t<T>;
      range = {static_cast<C>(std::numeric_limits<T>::lowest()), static_cast<C>(std::numeric_limits<T>::max())};
    }
  });
  return range;
}

// A bound as a scalar of `dtype`, moved towards zero where the dtype cannot hold it exactly.
Tensor bound(long double value, DType dtype) {
  Tensor t = Tensor::empty(dtype, {});
  real_numbers.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    if constexpr (std::is_integral_v<T>) {
      *t.mutable_data<T>() = static_cast<T>(value);
    } else if constexpr (cpu::is_half<T>) {
      *t.mutable_data<T>() = T(static_cast<float>(value));  // beyond what halves can be off by
    } else {
      T v = static_cast<T>(value);
      if (std::abs(static_cast<long double>(v)) > std::abs(value)) v = std::nextafter(v, T(0));
      *t.mutable_data<T>() = v;
    }
  });
  return t;
}

}  // namespace

void register_cast(Registry& r) {
  r.define<CastAttrs>("Cast")
      .type("SrcT", plain_types)
      .in("x")
      .out("y", "DstT")
      .shape(like<0>)
      .same_as([](InferContext& c) { return c.dtype(0) == c.attrs<CastAttrs>().DstT ? 0 : -1; })
      .forwards()
      .cpu([]<class From>(KernelContext& c, const CastAttrs& a) { cast_from<From>(c, a); })
      .grad([](const GradCtx& g, const CastAttrs& a) -> Gradients {
        const DType from = g.x().dtype();
        const auto smooth = [](DType t) { return is_float(t) || is_complex(t); };
        if (!smooth(from) || !smooth(a.DstT)) return {{}};
        return {cast(g.dy(), from)};
      })
      .elementwise_op()
      .grad_reads({})
      .doc("The same values in another dtype; floating values lose their fraction when they become integers.")
      .sample({.in = {Tensor{1.5f, -2.7f, 0.f}}, .out = {Tensor{1, -2, 0}}, .differentiable = false},
              {.DstT = DType::int32})
      .sample({.in = {Tensor{{1, 0}, {-3, 4}}}, .out = {Tensor{{1.f, 0.f}, {-3.f, 4.f}}}}, {.DstT = DType::float32})
      .sample({.in = {Tensor{0.f, 0.5f}}, .out = {Tensor{false, true}}, .differentiable = false},
              {.DstT = DType::bool_});

  r.define<BitcastAttrs>("Bitcast")
      .in("input", numbers)
      .out("output", "type")
      .shape([](InferContext& c, const BitcastAttrs& a) { c.output(bitcast_shape(c.input(0), c.dtype(0), a.type)); })
      .cpu([](KernelContext& c) { std::memcpy(c.out<char>(), c.in(0).raw(), c.in(0).num_bytes()); })
      .doc("The same bytes read as another dtype; a smaller one adds a last dimension, a larger one takes it away.")
      .sample({.out = {Tensor{0x3f800000, -2147483647 - 1}},
               .make =
                   [] {
                     return std::vector{Tensor{1.f, -0.f}};
                   }},
              {.type = DType::int32})
      .sample({.in = {Tensor{1.f}}, .error = "the last dimension must be 2"}, {.type = DType::float64});
}

Tensor cast(const Operand& x, DType dtype) {
  static const Op<CastAttrs> op("Cast");
  if (!x.is_literal() && x.tensor()->defined() && x.tensor()->dtype() == dtype) return *x.tensor();
  return op({x}, {.DstT = dtype});
}

Tensor cast(const Operand& x, std::string_view dtype) {
  return composed(x.where(), [&] { return cast(x, dtype_from_name(dtype)); });
}

Tensor saturate_cast(const Operand& value, DType dtype) {
  return composed(value.where(), [&]() -> Tensor {
    Tensor x = value.value();
    if (is_complex(x.dtype()) && !is_complex(dtype)) x = real(x);
    if (x.dtype() == dtype || is_complex(dtype) || x.dtype() == DType::bool_ || dtype == DType::bool_) {
      return cast(Operand(x, value.where()), dtype);
    }
    const Range from = range_of(x.dtype());
    const Range to = range_of(dtype);
    // Infinities are outside of every range.
    const bool open = is_float(x.dtype());
    if (open || to.lowest > from.lowest) x = maximum(x, bound(std::max(to.lowest, from.lowest), x.dtype()));
    if (open || to.highest < from.highest) x = minimum(x, bound(std::min(to.highest, from.highest), x.dtype()));
    return cast(Operand(x, value.where()), dtype);
  });
}

Tensor bitcast(const Operand& input, DType type) {
  static const Op<BitcastAttrs> op("Bitcast");
  return op({input}, {.type = type});
}

}  // namespace runnel
