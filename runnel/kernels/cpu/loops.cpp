#include "runnel/kernels/cpu/loops.h"

#include "runnel/base/parallel.h"

namespace runnel::cpu {
namespace {

const char* at(const void* p, int64_t i, int64_t size) { return static_cast<const char*>(p) + i * size; }
char* at(void* p, int64_t i, int64_t size) { return static_cast<char*>(p) + i * size; }

}  // namespace

void run_unary(UnaryKernel kernel, const void* x, int x_size, void* y, int y_size, int64_t n, const void* attrs) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    kernel(at(x, begin, x_size), at(y, begin, y_size), end - begin, attrs);
  });
}

void run_binary(BinaryKernel kernel, const void* a, int a_stride, const void* b, int b_stride, void* y, int y_size,
                int64_t n, const void* attrs) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    kernel(at(a, begin, a_stride), at(b, begin, b_stride), at(y, begin, y_size), end - begin, attrs);
  });
}

void run_ternary(TernaryKernel kernel, const void* a, int a_size, const void* b, int b_size, const void* c, int c_size,
                 void* y, int y_size, int64_t n, const void* attrs) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    kernel(at(a, begin, a_size), at(b, begin, b_size), at(c, begin, c_size), at(y, begin, y_size), end - begin, attrs);
  });
}

}  // namespace runnel::cpu
