#include "runnel/kernels/cpu/packed_product.h"

#include <algorithm>

#include "runnel/base/cpu.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/gemm.h"

#define RUNNEL_ISA_FILE "runnel/kernels/cpu/packed_product_isa.h"
#define RUNNEL_ISA_WITH_AVX512
#include "runnel/kernels/cpu/foreach_isa.h"

namespace runnel::cpu {
namespace {

constexpr double kPanelTaskFlops = 1e6;

int64_t vector_width() { return has_avx512() ? avx512::W : has_avx2() ? avx2::W : base::W; }
int64_t panel_columns() { return RUNNEL_BEST_ISA(kPanelColumns); }

// The columns of a panel that begins at column j, with those that fill its last vector up.
int64_t padded_columns(int64_t n, int64_t j) {
  const int64_t columns = std::min(panel_columns(), n - j), width = vector_width();
  return (columns + width - 1) / width * width;
}

}  // namespace

template <>
PackedMatrix<float>::PackedMatrix(ScratchFrame& frame, bool transposed, int64_t k, int64_t n, const float* b,
                                  int64_t ldb)
    : transposed_(transposed), k_(k), n_(n), ldb_(ldb) {
  const int64_t width = panel_columns(), panels = (n + width - 1) / width;
  float* packed = frame.get<float>(k * panels * width);
  b_ = packed;
  parallel_for(panels, std::max<int64_t>(1, (32 << 10) / (k * width + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * width, padded = padded_columns(n, first), columns = std::min(width, n - first);
      float* to = packed + k * first;
      for (int64_t p = 0; p < k; ++p, to += padded) {
        if (transposed) {
          for (int64_t j = 0; j < columns; ++j) to[j] = b[(first + j) * ldb + p];
        } else {
          std::copy_n(b + p * ldb + first, columns, to);
        }
        std::fill(to + columns, to + padded, 0.0f);
      }
    }
  });
}

template <>
void PackedMatrix<float>::add_product(int64_t m, const float* a, int64_t lda, float* c, int64_t ldc) const {
  if (m <= 0 || k_ <= 0) return;
  const int64_t width = panel_columns(), panels = (n_ + width - 1) / width;
  const double flops = 2.0 * static_cast<double>(m * width) * static_cast<double>(k_);
  parallel_for(panels, std::max<int64_t>(1, static_cast<int64_t>(kPanelTaskFlops / flops)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t first = begin * width; first < std::min(n_, end * width); first += width) {
                   RUNNEL_BEST_ISA(add_panel_product)
                   (m, k_, a, lda, b_ + k_ * first, c + first, ldc, std::min(width, n_ - first));
                 }
               });
}

template <>
PackedMatrix<double>::PackedMatrix(ScratchFrame&, bool transposed, int64_t k, int64_t n, const double* b, int64_t ldb)
    : transposed_(transposed), k_(k), n_(n), b_(b), ldb_(ldb) {}

template <>
void PackedMatrix<double>::add_product(int64_t m, const double* a, int64_t lda, double* c, int64_t ldc) const {
  gemm_plain<double>(false, transposed_, m, n_, k_, 1.0, a, lda, b_, ldb_, 1.0, c, ldc);
}

}  // namespace runnel::cpu
