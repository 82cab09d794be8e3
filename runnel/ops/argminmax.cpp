// The position of the largest or smallest element along an axis.
#include <algorithm>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/reduce.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/reduce.h"

namespace runnel {
namespace {

// TensorFlow's ArgMax gives positions in more dtypes than its ArgMin.
inline constexpr auto position_types = narrow_index_types + Types<uint16_t>{};
struct ArgMaxAttrs {
  DType output_type = DType::int64;
  static constexpr auto fields() {
    return field_list(field("output_type", &ArgMaxAttrs::output_type, {.types = position_types.mask}));
  }
};
struct ArgMinAttrs {
  DType output_type = DType::int64;
  static constexpr auto fields() {
    return field_list(field("output_type", &ArgMinAttrs::output_type, {.types = index_types.mask}));
  }
};

void arg_shape(InferContext& c) {
  c.require_rank(1, 0);
  const PartialShape& x = c.input(0);
  const auto axis = c.constant_ints(1);
  if (!x.has_rank()) return c.output(PartialShape::unknown());
  if (x.rank() == 0) throw invalid_argument("input must have an axis to search along, got a scalar");
  if (!axis) return c.output(PartialShape::unknown_dims(x.rank() - 1));
  Dims dims = x.dims();
  const int at = normalize_axis((*axis)[0], x.rank());
  if (dims[static_cast<size_t>(at)] == 0) throw invalid_argument("axis {} of {} is empty", at, x.str());
  dims.erase(dims.begin() + at);
  c.output(PartialShape(dims));
}

template <class T>
void arg_kernel(KernelContext& c, bool largest) {
  const Shape& s = c.in(0).shape();
  const int axis = normalize_axis(c.int_scalar(1), s.rank());
  int64_t outer = 1;
  int64_t inner = 1;
  for (int i = 0; i < axis; ++i) outer *= s[i];
  for (int i = axis + 1; i < s.rank(); ++i) inner *= s[i];
  position_types.for_each([&]<class I>() {
    if (c.output_dtype(0) != dtype_of<I>) return;
    if constexpr (sizeof(I) >= 4) {
      cpu::arg_reduce(largest, c.in<T>(0), outer, s[axis], inner, c.out<I>());
    } else {
      std::vector<int32_t> wide(static_cast<size_t>(c.out().num_elements()));
      cpu::arg_reduce(largest, c.in<T>(0), outer, s[axis], inner, wide.data());
      std::transform(wide.begin(), wide.end(), c.out<I>(), [](int32_t at) { return static_cast<I>(at); });
    }
  });
}

}  // namespace

void register_argminmax(Registry& r) {
  r.define<ArgMaxAttrs>("ArgMax")
      .in("input", real_numbers + booleans)
      .type("Tidx", narrow_index_types, DType::int32)
      .in_host("dimension", "Tidx")
      .out("output", "output_type")
      .shape(arg_shape)
      .cpu([]<class T>(KernelContext& c) { arg_kernel<T>(c, true); })
      .doc("The index of the largest element along an axis, the first of several.")
      .sample({.in = {Tensor{{1.f, 5.f}, {3.f, 4.f}}, Tensor(0)}, .out = {Tensor{int64_t{1}, int64_t{0}}}})
      .sample({.in = {Tensor{{1.f, 5.f, 5.f}, {7.f, 4.f, 2.f}}, Tensor(-1)}, .out = {Tensor{1, 0}}},
              {.output_type = DType::int32})
      .sample({.in = {Tensor{3.f, 9.f, 4.f}, Tensor(0)}, .out = {Tensor(uint16_t{1})}}, {.output_type = DType::uint16})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(1)}, .error = "out of range"})
      .sample({.in = {Tensor(1.f), Tensor(0)}, .error = "scalar"});

  r.define<ArgMinAttrs>("ArgMin")
      .in("input", real_numbers + booleans)
      .in_host("dimension", "Tidx")
      .out("output", "output_type")
      .shape(arg_shape)
      .cpu([]<class T>(KernelContext& c) { arg_kernel<T>(c, false); })
      .doc("The index of the smallest element along an axis, the first of several.")
      .sample({.in = {Tensor{{1.f, 5.f}, {3.f, 4.f}}, Tensor(0)}, .out = {Tensor{int64_t{0}, int64_t{1}}}})
      .sample({.in = {Tensor{{6.f, 5.f, 5.f}, {7.f, 4.f, 2.f}}, Tensor(-1)}, .out = {Tensor{1, 2}}},
              {.output_type = DType::int32})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(0)}, .error = "attr 'output_type' of int16 is not in the list"},
              {.output_type = DType::int16});
}

Tensor argmax(const Operand& input, const Operand& axis, DType output_type) {
  static const Op<ArgMaxAttrs> op("ArgMax");
  return op({input, axis}, {.output_type = output_type});
}
Tensor argmin(const Operand& input, const Operand& axis, DType output_type) {
  static const Op<ArgMinAttrs> op("ArgMin");
  return op({input, axis}, {.output_type = output_type});
}

}  // namespace runnel
