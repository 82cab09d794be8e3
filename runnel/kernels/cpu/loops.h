#pragma once

// Turns a captureless functor F (called as F{}(x...) or F{}(x..., attrs)) into loops over contiguous memory.
//
//   unary_loop<F, In, Out>(x, y, n)              y[i] = F(x[i])
//   binary_loop<F, In, Out>(a, b, y, n)          y[i] = F(a[i], b[i]); _vs and _sv have one scalar operand
//   ternary_loop<F, A, B, C, Out>(a, b, c, y, n)
//
// each with an optional last argument `attrs`. An output may be exactly one of the inputs, never a shifted
// overlap. Loops over float, double, int32 and int64 exist twice, for AVX2 and for the baseline, and the
// compiler vectorises both; other types have the baseline only. float16 and bfloat16 compute in float, a
// block at a time. Large n runs on the compute pool, cut by n alone.
//
// A functor that knows a faster way for floats offers `static void block(const float* x, float* y, int64_t
// n)`, or `block(a, b, y, n)` of two operands; it must give each element the same bits wherever in the array it stands.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/isa.h"

namespace runnel::cpu {

inline constexpr int64_t kGrain = 32768;    // elements per parallel chunk
inline constexpr int64_t kHalfBlock = 256;  // elements converted at a time for the 16-bit types

struct NoAttrs {};

// Type-erased kernels, so that the code that cuts, broadcasts and parallelises exists once.
using UnaryKernel = void (*)(const void* x, void* y, int64_t n, const void* attrs);
using BinaryKernel = void (*)(const void* a, const void* b, void* y, int64_t n, const void* attrs);
using TernaryKernel = void (*)(const void* a, const void* b, const void* c, void* y, int64_t n, const void* attrs);
struct BinaryKernels {
  BinaryKernel vv, vs, sv;
};

RUNNEL_API void run_unary(UnaryKernel kernel, const void* x, int x_size, void* y, int y_size, int64_t n,
                          const void* attrs);
// A stride of 0 marks the scalar operand.
RUNNEL_API void run_binary(BinaryKernel kernel, const void* a, int a_stride, const void* b, int b_stride, void* y,
                           int y_size, int64_t n, const void* attrs);

namespace detail {

template <class T>
inline constexpr bool has_wide_clone =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

template <class F, class A, class... T>
RUNNEL_INLINE auto apply(const A& attrs, T... x) {  // by value: every operand is loaded, unconditionally
  if constexpr (std::is_same_v<A, NoAttrs>) {
    return F{}(x...);
  } else {
    return F{}(x..., attrs);
  }
}

// Bytes compared with 0 vectorise where GCC gives up on loaded bools.
template <class T>
RUNNEL_INLINE T load(const T* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const uint8_t*>(p) != 0;
  } else {
    return *p;
  }
}

// Attributes are copied where that is cheap: the compiler then knows that stores cannot change them.
template <class A>
using Held = std::conditional_t<std::is_trivially_copyable_v<A>, const A, const A&>;

template <class F, class In, class Out, class A>
RUNNEL_INLINE void unary_body(const void* xp, void* yp, int64_t n, const void* ap) {
  const In* x = static_cast<const In*>(xp);
  Out* y = static_cast<Out*>(yp);
  Held<A> attrs = *static_cast<const A*>(ap);
  RUNNEL_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Out>(apply<F>(attrs, load(x + i)));
}
template <class F, class In, class Out, class A>
RUNNEL_FLATTEN void unary_base(const void* x, void* y, int64_t n, const void* a) {
  unary_body<F, In, Out, A>(x, y, n, a);
}
template <class F, class In, class Out, class A>
RUNNEL_AVX2 RUNNEL_FLATTEN void unary_avx2(const void* x, void* y, int64_t n, const void* a) {
  unary_body<F, In, Out, A>(x, y, n, a);
}

enum Kind { kVV, kVS, kSV };

template <Kind kind, class F, class In, class Out, class A>
RUNNEL_INLINE void binary_body(const void* ap, const void* bp, void* yp, int64_t n, const void* attrsp) {
  const In* a = static_cast<const In*>(ap);
  const In* b = static_cast<const In*>(bp);
  Out* y = static_cast<Out*>(yp);
  Held<A> attrs = *static_cast<const A*>(attrsp);
  if constexpr (kind == kVV) {
    RUNNEL_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Out>(apply<F>(attrs, load(a + i), load(b + i)));
  } else if constexpr (kind == kVS) {
    const In s = *b;
    RUNNEL_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Out>(apply<F>(attrs, load(a + i), s));
  } else {
    const In s = *a;
    RUNNEL_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Out>(apply<F>(attrs, s, load(b + i)));
  }
}
template <Kind kind, class F, class In, class Out, class A>
RUNNEL_FLATTEN void binary_base(const void* a, const void* b, void* y, int64_t n, const void* attrs) {
  binary_body<kind, F, In, Out, A>(a, b, y, n, attrs);
}
template <Kind kind, class F, class In, class Out, class A>
RUNNEL_AVX2 RUNNEL_FLATTEN void binary_avx2(const void* a, const void* b, void* y, int64_t n, const void* attrs) {
  binary_body<kind, F, In, Out, A>(a, b, y, n, attrs);
}

template <class F, class T0, class T1, class T2, class Out, class A>
RUNNEL_INLINE void ternary_body(const void* ap, const void* bp, const void* cp, void* yp, int64_t n,
                                const void* attrsp) {
  const T0* a = static_cast<const T0*>(ap);
  const T1* b = static_cast<const T1*>(bp);
  const T2* c = static_cast<const T2*>(cp);
  Out* y = static_cast<Out*>(yp);
  Held<A> attrs = *static_cast<const A*>(attrsp);
  RUNNEL_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Out>(apply<F>(attrs, load(a + i), load(b + i), load(c + i)));
}
template <class F, class T0, class T1, class T2, class Out, class A>
RUNNEL_FLATTEN void ternary_base(const void* a, const void* b, const void* c, void* y, int64_t n, const void* attrs) {
  ternary_body<F, T0, T1, T2, Out, A>(a, b, c, y, n, attrs);
}
template <class F, class T0, class T1, class T2, class Out, class A>
RUNNEL_AVX2 RUNNEL_FLATTEN void ternary_avx2(const void* a, const void* b, const void* c, void* y, int64_t n,
                                             const void* attrs) {
  ternary_body<F, T0, T1, T2, Out, A>(a, b, c, y, n, attrs);
}

// An operand as the computing kernel sees it: a converted copy of a block of a 16-bit type, else the memory
// itself.
template <class T>
struct InBlock {
  const void* at(const void* x, int64_t i, int64_t) { return static_cast<const T*>(x) + i; }
};
template <class T>
  requires is_half<T>
struct InBlock<T> {
  alignas(32) float data[kHalfBlock];
  const void* at(const void* x, int64_t i, int64_t n) {
    convert_block(static_cast<const T*>(x) + i, data, n);
    return data;
  }
};
template <class T>
struct OutBlock {
  void* at(void* y, int64_t i) { return static_cast<T*>(y) + i; }
  void store(void*, int64_t, int64_t) {}
};
template <class T>
  requires is_half<T>
struct OutBlock<T> {
  alignas(32) float data[kHalfBlock];
  void* at(void*, int64_t) { return data; }
  void store(void* y, int64_t i, int64_t n) { convert_block(data, static_cast<T*>(y) + i, n); }
};

template <class F>
void unary_block(const void* x, void* y, int64_t n, const void*) {
  F::block(static_cast<const float*>(x), static_cast<float*>(y), n);
}
// A scalar operand is written out for a piece of the other.
template <Kind kind, class F>
void binary_block(const void* ap, const void* bp, void* yp, int64_t n, const void*) {
  const float* a = static_cast<const float*>(ap);
  const float* b = static_cast<const float*>(bp);
  float* y = static_cast<float*>(yp);
  if constexpr (kind == kVV) {
    F::block(a, b, y, n);
  } else {
    float scalar[kHalfBlock];
    std::fill(scalar, scalar + std::min(n, kHalfBlock), kind == kSV ? *a : *b);
    for (int64_t i = 0; i < n; i += kHalfBlock) {
      F::block(kind == kSV ? scalar : a + i, kind == kVS ? scalar : b + i, y + i, std::min(kHalfBlock, n - i));
    }
  }
}

}  // namespace detail

template <class F, class In, class Out, class A = NoAttrs>
UnaryKernel unary_kernel();
template <class F, class In, class Out, class A = NoAttrs>
BinaryKernels binary_kernels();
template <class F, class T0, class T1, class T2, class Out, class A = NoAttrs>
TernaryKernel ternary_kernel();

namespace detail {

template <class F, class In, class Out, class A>
void unary_half(const void* x, void* y, int64_t n, const void* attrs) {
  const UnaryKernel kernel = unary_kernel<F, compute_t<In>, compute_t<Out>, A>();
  InBlock<In> in;
  OutBlock<Out> out;
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = std::min(kHalfBlock, n - i);
    kernel(in.at(x, i, m), out.at(y, i), m, attrs);
    out.store(y, i, m);
  }
}

template <Kind kind, class F, class In, class Out, class A>
void binary_half(const void* a, const void* b, void* y, int64_t n, const void* attrs) {
  const BinaryKernels kernels = binary_kernels<F, compute_t<In>, compute_t<Out>, A>();
  const BinaryKernel kernel = kind == kVV ? kernels.vv : kind == kVS ? kernels.vs : kernels.sv;
  InBlock<In> in_a, in_b;
  OutBlock<Out> out;
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = std::min(kHalfBlock, n - i);
    const void* pa = kind == kSV ? in_a.at(a, 0, 1) : in_a.at(a, i, m);
    const void* pb = kind == kVS ? in_b.at(b, 0, 1) : in_b.at(b, i, m);
    kernel(pa, pb, out.at(y, i), m, attrs);
    out.store(y, i, m);
  }
}

template <class F, class T0, class T1, class T2, class Out, class A>
void ternary_half(const void* a, const void* b, const void* c, void* y, int64_t n, const void* attrs) {
  const TernaryKernel kernel = ternary_kernel<F, compute_t<T0>, compute_t<T1>, compute_t<T2>, compute_t<Out>, A>();
  InBlock<T0> in_a;
  InBlock<T1> in_b;
  InBlock<T2> in_c;
  OutBlock<Out> out;
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = std::min(kHalfBlock, n - i);
    kernel(in_a.at(a, i, m), in_b.at(b, i, m), in_c.at(c, i, m), out.at(y, i), m, attrs);
    out.store(y, i, m);
  }
}

}  // namespace detail

template <class F, class In, class Out, class A>
UnaryKernel unary_kernel() {
  if constexpr (is_half<In> || is_half<Out>) {
    return &detail::unary_half<F, In, Out, A>;
  } else if constexpr (std::is_same_v<In, float> && std::is_same_v<Out, float> &&
                       requires(float* p) { F::block(p, p, int64_t{}); }) {
    return &detail::unary_block<F>;
  } else if constexpr (detail::has_wide_clone<In>) {
    return has_avx2() ? &detail::unary_avx2<F, In, Out, A> : &detail::unary_base<F, In, Out, A>;
  } else {
    return &detail::unary_base<F, In, Out, A>;
  }
}

template <class F, class In, class Out, class A>
BinaryKernels binary_kernels() {
  using namespace detail;
  if constexpr (is_half<In> || is_half<Out>) {
    return {&binary_half<kVV, F, In, Out, A>, &binary_half<kVS, F, In, Out, A>, &binary_half<kSV, F, In, Out, A>};
  } else if constexpr (std::is_same_v<In, float> && std::is_same_v<Out, float> &&
                       requires(float* p) { F::block(p, p, p, int64_t{}); }) {
    return {&binary_block<kVV, F>, &binary_block<kVS, F>, &binary_block<kSV, F>};
  } else {
    if constexpr (has_wide_clone<In>) {
      if (has_avx2()) {
        return {&binary_avx2<kVV, F, In, Out, A>, &binary_avx2<kVS, F, In, Out, A>, &binary_avx2<kSV, F, In, Out, A>};
      }
    }
    return {&binary_base<kVV, F, In, Out, A>, &binary_base<kVS, F, In, Out, A>, &binary_base<kSV, F, In, Out, A>};
  }
}

template <class F, class T0, class T1, class T2, class Out, class A>
TernaryKernel ternary_kernel() {
  if constexpr (is_half<T0> || is_half<T1> || is_half<T2> || is_half<Out>) {
    return &detail::ternary_half<F, T0, T1, T2, Out, A>;
  } else if constexpr (detail::has_wide_clone<T1>) {
    return has_avx2() ? &detail::ternary_avx2<F, T0, T1, T2, Out, A> : &detail::ternary_base<F, T0, T1, T2, Out, A>;
  } else {
    return &detail::ternary_base<F, T0, T1, T2, Out, A>;
  }
}

template <class F, class In, class Out, class A = NoAttrs>
void unary_loop(const In* x, Out* y, int64_t n, const A& attrs = {}) {
  const UnaryKernel kernel = unary_kernel<F, In, Out, A>();
  if (n <= kGrain) return kernel(x, y, n, &attrs);
  run_unary(kernel, x, sizeof(In), y, sizeof(Out), n, &attrs);
}

template <class F, class In, class Out, class A = NoAttrs>
void binary_loop(const In* a, const In* b, Out* y, int64_t n, const A& attrs = {}) {
  const BinaryKernel kernel = binary_kernels<F, In, Out, A>().vv;
  if (n <= kGrain) return kernel(a, b, y, n, &attrs);
  run_binary(kernel, a, sizeof(In), b, sizeof(In), y, sizeof(Out), n, &attrs);
}

template <class F, class In, class Out, class A = NoAttrs>
void binary_loop_vs(const In* a, const In* scalar, Out* y, int64_t n, const A& attrs = {}) {
  const BinaryKernel kernel = binary_kernels<F, In, Out, A>().vs;
  if (n <= kGrain) return kernel(a, scalar, y, n, &attrs);
  run_binary(kernel, a, sizeof(In), scalar, 0, y, sizeof(Out), n, &attrs);
}

template <class F, class In, class Out, class A = NoAttrs>
void binary_loop_sv(const In* scalar, const In* b, Out* y, int64_t n, const A& attrs = {}) {
  const BinaryKernel kernel = binary_kernels<F, In, Out, A>().sv;
  if (n <= kGrain) return kernel(scalar, b, y, n, &attrs);
  run_binary(kernel, scalar, 0, b, sizeof(In), y, sizeof(Out), n, &attrs);
}

RUNNEL_API void run_ternary(TernaryKernel kernel, const void* a, int a_size, const void* b, int b_size, const void* c,
                            int c_size, void* y, int y_size, int64_t n, const void* attrs);

template <class F, class T0, class T1, class T2, class Out, class A = NoAttrs>
void ternary_loop(const T0* a, const T1* b, const T2* c, Out* y, int64_t n, const A& attrs = {}) {
  const TernaryKernel kernel = ternary_kernel<F, T0, T1, T2, Out, A>();
  if (n <= kGrain) return kernel(a, b, c, y, n, &attrs);
  run_ternary(kernel, a, sizeof(T0), b, sizeof(T1), c, sizeof(T2), y, sizeof(Out), n, &attrs);
}

}  // namespace runnel::cpu
