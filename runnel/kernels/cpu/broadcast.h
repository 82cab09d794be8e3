#pragma once

// Elementwise functors over broadcast operands. Shapes follow NumPy's rule and were checked by the caller:
// every operand dimension is 1 or the output's, aligned at the last dimension.
//
//   binary_broadcast<F, In, Out>(a, a_shape, b, b_shape, y, y_shape)
//   ternary_broadcast<F, A, B, C, Out>(a, a_shape, b, b_shape, c, c_shape, y, y_shape)
//   broadcast_to(x, x_shape, y, y_shape, element_size)

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "runnel/kernels/cpu/loops.h"

namespace runnel::cpu {

using Dims = std::span<const int64_t>;

// Output dimensions with those of size 1 dropped and neighbours merged wherever every operand steps through
// them uniformly; rank is at least 1. Strides count elements; 0 repeats the operand along that dimension.
struct BroadcastPlan {
  static constexpr int kMaxRank = 24;
  static constexpr int kMaxOperands = 3;
  int operands = 0;
  int rank = 0;
  int64_t size = 0;
  int64_t dims[kMaxRank];
  int64_t strides[kMaxOperands][kMaxRank];

  bool is_flat(int operand, int64_t stride) const { return rank == 1 && strides[operand][0] == stride; }
};

RUNNEL_API BroadcastPlan make_broadcast_plan(Dims out, std::initializer_list<Dims> operands);

RUNNEL_API void run_binary_broadcast(const BroadcastPlan& plan, const BinaryKernels& kernels, const void* a,
                                     const void* b, void* y, int in_size, int out_size, const void* attrs);
RUNNEL_API void run_ternary_broadcast(const BroadcastPlan& plan, TernaryKernel kernel, const void* a, int a_size,
                                      const void* b, int b_size, const void* c, int c_size, void* y, int y_size,
                                      const void* attrs);
RUNNEL_API void broadcast_to(const void* x, Dims x_shape, void* y, Dims y_shape, int element_size);

inline bool same_dims(Dims a, Dims b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
inline int64_t num_elements(Dims shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

template <class F, class In, class Out, class A = NoAttrs>
void binary_broadcast(const In* a, Dims a_shape, const In* b, Dims b_shape, Out* y, Dims y_shape, const A& attrs = {}) {
  if (same_dims(a_shape, b_shape) && same_dims(a_shape, y_shape)) {
    return binary_loop<F>(a, b, y, num_elements(y_shape), attrs);
  }
  const BroadcastPlan plan = make_broadcast_plan(y_shape, {a_shape, b_shape});
  run_binary_broadcast(plan, binary_kernels<F, In, Out, A>(), a, b, y, sizeof(In), sizeof(Out), &attrs);
}

template <class F, class T0, class T1, class T2, class Out, class A = NoAttrs>
void ternary_broadcast(const T0* a, Dims a_shape, const T1* b, Dims b_shape, const T2* c, Dims c_shape, Out* y,
                       Dims y_shape, const A& attrs = {}) {
  const BroadcastPlan plan = make_broadcast_plan(y_shape, {a_shape, b_shape, c_shape});
  run_ternary_broadcast(plan, ternary_kernel<F, T0, T1, T2, Out, A>(), a, sizeof(T0), b, sizeof(T1), c, sizeof(T2), y,
                        sizeof(Out), &attrs);
}

}  // namespace runnel::cpu
