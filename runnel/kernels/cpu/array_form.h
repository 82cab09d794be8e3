#pragma once

// In a file of foreach_isa.h: the array form of a function of one vector, or of two. The tail goes through the same
// vector code as the rest, so that an element's bits do not depend on its place. The second argument stands in the
// lists of functions for other uses.

#define RUNNEL_ARRAY_FORM(name, Name)                                        \
  RUNNEL_ISA_TARGET void name##_array(const float* x, float* y, int64_t n) { \
    int64_t i = 0;                                                           \
    for (; i + W <= n; i += W) store(y + i, name(load(x + i)));              \
    if (i < n) store_n(y + i, name(load_n(x + i, n - i)), n - i);            \
  }
#define RUNNEL_ARRAY_FORM_OF_TWO(name, Name)                                                 \
  RUNNEL_ISA_TARGET void name##_array(const float* a, const float* b, float* y, int64_t n) { \
    int64_t i = 0;                                                                           \
    for (; i + W <= n; i += W) store(y + i, name(load(a + i), load(b + i)));                 \
    if (i < n) store_n(y + i, name(load_n(a + i, n - i), load_n(b + i, n - i)), n - i);      \
  }
