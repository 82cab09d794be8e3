#pragma once

// Tensors as kernels that know float and double alone see them: the memory itself, or, for the 16-bit
// floating types, a float copy.

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

template <class From, class To>
void convert_elements(const From* x, To* y, int64_t n) {
  parallel_for(n, cpu::kGrain,
               [&](int64_t begin, int64_t end) { cpu::convert_block(x + begin, y + begin, end - begin); });
}

template <class T>
class ComputeIn {
 public:
  explicit ComputeIn(const Tensor& t) : tensor_(t) {
    if constexpr (cpu::is_half<T>) {
      tensor_ = Tensor::empty(DType::float32, t.shape());
      convert_elements(t.data<T>(), tensor_.template mutable_data<float>(), t.num_elements());
    }
  }
  const cpu::compute_t<T>* data() const { return tensor_.template data<cpu::compute_t<T>>(); }

 private:
  Tensor tensor_;
};

// What is written to data() stands in the tensor after store().
template <class T>
class ComputeOut {
 public:
  explicit ComputeOut(const Tensor& t) : result_(t), tensor_(t) {
    if constexpr (cpu::is_half<T>) tensor_ = Tensor::empty(DType::float32, t.shape());
  }
  cpu::compute_t<T>* data() const { return tensor_.template mutable_data<cpu::compute_t<T>>(); }
  void store() const {
    if constexpr (cpu::is_half<T>) {
      convert_elements(tensor_.template data<float>(), result_.template mutable_data<T>(), result_.num_elements());
    }
  }

 private:
  Tensor result_, tensor_;
};

}  // namespace runnel
