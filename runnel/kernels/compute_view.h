#pragma once

// Tensors as kernels that know float and double alone see them: the memory itself, or, for the 16-bit
// floating types, a float copy in the thread's scratch memory: views end in the reverse of the order they were made.

#include <type_traits>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/loops.h"
#include "runnel/kernels/cpu/scratch.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

template <class From, class To>
void convert_elements(const From* x, To* y, int64_t n) {
  parallel_for(n, cpu::kGrain,
               [&](int64_t begin, int64_t end) { cpu::convert_block(x + begin, y + begin, end - begin); });
}

struct NoScratchFrame {};
template <class T>
using ComputeFrame = std::conditional_t<cpu::is_half<T>, cpu::ScratchFrame, NoScratchFrame>;

template <class T>
class ComputeIn {
 public:
  explicit ComputeIn(const Tensor& t) : tensor_(t) {
    if constexpr (cpu::is_half<T>) {
      auto* wide = frame_.template get<float>(t.num_elements());
      convert_elements(t.data<T>(), wide, t.num_elements());
      data_ = wide;
    } else {
      data_ = t.data<T>();
    }
  }
  ComputeIn(const ComputeIn&) = delete;
  ComputeIn& operator=(const ComputeIn&) = delete;

  const cpu::compute_t<T>* data() const { return data_; }

 private:
  Tensor tensor_;
  ComputeFrame<T> frame_;
  const cpu::compute_t<T>* data_;
};

// What is written to data() stands in the tensor after store().
template <class T>
class ComputeOut {
 public:
  explicit ComputeOut(const Tensor& t) : result_(t) {
    if constexpr (cpu::is_half<T>) {
      data_ = frame_.template get<float>(t.num_elements());
    } else {
      data_ = t.mutable_data<T>();
    }
  }
  ComputeOut(const ComputeOut&) = delete;
  ComputeOut& operator=(const ComputeOut&) = delete;

  cpu::compute_t<T>* data() const { return data_; }
  void store() const {
    if constexpr (cpu::is_half<T>) {
      convert_elements(data_, result_.template mutable_data<T>(), result_.num_elements());
    }
  }

 private:
  Tensor result_;
  ComputeFrame<T> frame_;
  cpu::compute_t<T>* data_;
};

}  // namespace runnel
