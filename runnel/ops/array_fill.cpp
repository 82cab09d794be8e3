// Constants and tensors filled with one value.
#include <algorithm>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"
#include "runnel/ops/tensor_list.h"

namespace runnel {
namespace {

void fill_tensor(const Tensor& t, const void* value) {
  cpu::copy_strided(t.dtype(), Dims{t.num_elements()}, value, Dims{0}, t.mutable_data<char>(), Dims{1});
}

}  // namespace

void register_array_fill(Registry& r) {
  r.define("ZerosLike")
      .in("x", data_types + Types<VariantValue>{})
      .out("y")
      .shape(like<0>)
      .cpu([](KernelContext& c) {
        const Tensor& y = c.out();
        if (is_plain(y.dtype())) std::memset(c.out<char>(), 0, y.num_bytes());
        if (y.dtype() == DType::variant) {
          std::transform(c.in<VariantValue>(0), c.in<VariantValue>(0) + y.num_elements(), c.out<VariantValue>(),
                         zeros_like_variant);
        }
      })
      .not_differentiable()
      .doc("Zeros in the shape and dtype of the input (empty strings for strings).")
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{0.f, 0.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}}, .out = {Tensor{{0.f}, {0.f}}}});

  r.define("OnesLike")
      .in("x", plain_types)
      .out("y")
      .shape(like<0>)
      .cpu([]<class T>(KernelContext& c) {
        const T one(1);
        fill_tensor(c.out(), &one);
      })
      .not_differentiable()
      .doc("Ones in the shape and dtype of the input.")
      .sample({.in = {Tensor{5.f, 2.f}}, .out = {Tensor{1.f, 1.f}}})
      .sample({.in = {Tensor(5.f)}, .out = {Tensor(1.f)}});

  r.define("Fill")
      .type("T", all_types)
      .in_host("dims", "index_type")
      .in("value", "T")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        c.require_rank(1, 0);
        c.output(constant_sizes(c, 0));
      })
      .cpu([](KernelContext& c) { fill_tensor(c.out(), c.in(1).raw()); })
      .grad([](const GradCtx& g) {
        return Gradients{{}, reduce_sum(g.dy())};
      })
      .doc("A tensor of shape `dims` with every element `value`.")
      .sample({.in = {Tensor{2}, Tensor(7.f)}, .out = {Tensor{7.f, 7.f}}})
      .sample({.in = {Tensor{2, 0}, Tensor(7.f)}, .out = {Tensor::empty(DType::float32, {2, 0})}})
      .sample({.in = {Tensor{-1}, Tensor(7.f)}, .error = "negative"});
}

Tensor zeros_like(const Operand& input) {
  static const Op op("ZerosLike");
  return op({input});
}
Tensor ones_like(const Operand& input) {
  static const Op op("OnesLike");
  return op({input});
}
Tensor zeros_like(const Operand& input, DType dtype) {
  return composed(input.where(), [&] { return zeros(shape_arg(input.value(), input.where()), dtype); });
}
Tensor ones_like(const Operand& input, DType dtype) {
  return composed(input.where(), [&] { return ones(shape_arg(input.value(), input.where()), dtype); });
}

Tensor fill(const ShapeArg& dims, const Operand& value) {
  static const Op op("Fill");
  return op({dims.tensor(), value});
}

Tensor zeros(const ShapeArg& shape, DType dtype) {
  return composed(shape.where(), [&]() -> Tensor {
    if (dtype == DType::string) return fill(shape, Operand("", shape.where()));
    Tensor zero = Tensor::empty(dtype, {});
    std::memset(zero.mutable_data<char>(), 0, zero.num_bytes());
    return fill(shape, Operand(zero, shape.where()));
  });
}

Tensor ones(const ShapeArg& shape, DType dtype) {
  return composed(shape.where(), [&]() -> Tensor {
    Tensor one;
    plain_types.for_each([&]<class T>() {
      if (dtype_of<T> != dtype) return;
      one = Tensor::empty(dtype, {});
      *one.mutable_data<T>() = T(1);
    });
    if (!one.defined()) {
      throw invalid_argument("[ones] there is no 1 of dtype {}", dtype_name(dtype));
    }
    return fill(shape, Operand(one, shape.where()));
  });
}

namespace {

Tensor tensor_from(const char* name, const Operand& value, DType dtype) {
  return composed(value.where(), [&]() -> Tensor {
    if (value.is_literal()) {
      try {
        return value.as(dtype == DType::invalid ? value.natural_dtype() : dtype);
      } catch (const Error& e) {
        throw make_error(e.code(), "[{}] {}", name, e.what());
      }
    }
    const Tensor& t = *value.tensor();
    if (dtype != DType::invalid && t.dtype() != dtype) {
      throw invalid_argument("[{}] the value is {}, asked for {}: cast it", name, dtype_name(t.dtype()),
                             dtype_name(dtype));
    }
    return t;
  });
}

}  // namespace

Tensor constant(const Operand& value, DType dtype) { return tensor_from("constant", value, dtype); }
Tensor convert_to_tensor(const Operand& value, DType dtype) { return tensor_from("convert_to_tensor", value, dtype); }

Tensor constant(const Operand& value, DType dtype, const Shape& shape) {
  return composed(value.where(), [&]() -> Tensor {
    const Operand t(constant(value, dtype), value.where());
    if (t.tensor()->num_elements() != 1) return reshape(t, shape);
    return fill(shape, Operand(reshape(t, Shape{}), value.where()));
  });
}

Tensor GradCtx::dy(int i) const {
  const Gradient& g = raw_dy(i);
  return g.defined() ? g.value() : zeros_like(y(i));
}

}  // namespace runnel
