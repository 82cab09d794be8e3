#include "runnel/kernels/cpu/gemm.h"

#include <algorithm>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/dnnl_common.h"
#include "runnel/kernels/cpu/gemm_narrow.h"
#include "runnel/kernels/cpu/gemv.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/scratch.h"

// Matrices run on oneDNN's sgemm, one thread per block of C; the blocks are cut by shape alone. Blocks are also faster
// than one call on the whole: a block of at most 256 columns of a [in, out] dense kernel (k = 3136, rows 1024 apart)
// runs at twice the speed, because what sgemm repacks stays in the second-level cache.

namespace runnel::cpu {
namespace {

constexpr double kTaskFlops = 0.4e6;  // below about five microseconds a task is not worth handing over

struct Problem {
  bool ta, tb;
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float beta;
  float* c;
  int64_t ldc;
  Epilogue epilogue;

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Part i of `parts` balanced parts of [0, n).
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Range part(int64_t n, int64_t parts, int64_t i) { return {n * i / parts, n * (i + 1) / parts}; }

// Part i of `parts` parts of [0, n), cut at multiples of 16 so that no block has a needless tail.
Range aligned_part(int64_t n, int64_t parts, int64_t i) {
  const Range r = part(ceil_div(n, 16), parts, i);
  return {r.begin * 16, std::min(n, r.end * 16)};
}

// The epilogue for rows of C (starting at c) that already hold alpha * AB + beta * C.
void finish_rows(const Problem& g, int64_t rows, Range columns, float* c) {
  if (!g.epilogue.empty()) finish_rows(g.epilogue, rows, columns.begin, columns.size(), c, g.ldc);
}

// c = alpha * y + beta * c, then the epilogue, for columns from `first` on of one row.
void store_row(const Problem& g, const float* y, int64_t n, float* c, int64_t first = 0) {
  for (int64_t j = 0; j < n; ++j) {
    const float x = g.alpha * y[j];
    c[j] = g.beta != 0 ? x + g.beta * c[j] : x;
  }
  finish_rows(g, 1, {first, first + n}, c);
}

void finish_empty(const Problem& g) {
  ScratchFrame frame;
  float* zeros = frame.get<float>(g.n);
  std::fill(zeros, zeros + g.n, 0.0f);
  for (int64_t i = 0; i < g.m; ++i) store_row(g, zeros, g.n, g.c + i * g.ldc);
}

// The tasks of run_vector, in as few lines of memory as they fit: a thread that gets some reads them from the caller's.
struct alignas(64) VectorTasks {
  enum Way : int8_t { rows, dots, packed };
  int64_t n, k;
  const float* x;
  int64_t incx;
  const float* matrix;
  int64_t ld;
  float* first;  // of the first part of the sum
  float* others;
  int columns, sums;
  Way way;

  // A worker starts on the second of two parts a third of a microsecond after the caller has started on the first.
  Range part_of_sum(int64_t i) const {
    static_assert(16 % kPackedGroup == 0);
    if (sums != 2) return aligned_part(k, sums, i);
    const int64_t cut = (k / 2 + k / 24) / 16 * 16;
    return i == 0 ? Range{0, cut} : Range{cut, k};
  }
  void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const Range r = part(n, columns, i % columns), s = part_of_sum(i / columns);
      float* out = (i < columns ? first : others + (i / columns - 1) * n) + r.begin;
      if (way == dots) {
        gemv_dots(r.size(), s.size(), x + s.begin, matrix + r.begin * ld + s.begin, ld, out);
      } else if (way == packed) {
        gemv_packed(n, s.size(), x + s.begin, matrix + s.begin * n, out);
      } else {
        gemv_rows(r.size(), s.size(), x + s.begin * incx, incx, matrix + s.begin * ld + r.begin, ld, out);
      }
    }
  }
};

// One row (or, through the transposed problem, one column) of C. A packed B is of one row and not transposed.
void run_vector(const Problem& g, bool packed = false) {
  const bool row = g.m == 1;
  const int64_t n = row ? g.n : g.m;
  const float* x = row ? g.a : g.b;
  int64_t incx = row ? (g.ta ? g.lda : 1) : (g.tb ? 1 : g.ldb);
  const float* matrix = row ? g.b : g.a;
  const int64_t ld = row ? g.ldb : g.lda;
  const bool dots = row ? g.tb : !g.ta;
  ScratchFrame frame;
  if (dots && incx != 1) {
    float* dense = frame.get<float>(g.k);
    for (int64_t p = 0; p < g.k; ++p) dense[p] = x[p * incx];
    x = dense;
    incx = 1;
  }
  // Cut the outputs; where they are few and the sum is long, cut the sum and add the parts in order. Rows of a matrix
  // are read whole where that leaves tasks enough: parts of rows that lie a page apart come at two thirds of the speed.
  const double size = static_cast<double>(n) * static_cast<double>(g.k);
  const auto wanted = static_cast<int64_t>(std::clamp(size / (32 << 10), 1.0, 16.0));
  int64_t columns = 1, sums = 1;
  if (dots) {
    columns = std::clamp<int64_t>(n / 4, 1, wanted);
    sums = std::clamp<int64_t>(g.k / 256, 1, wanted / columns);
  } else {
    const int64_t fewest = ceil_div(n, 4096);  // a part of y stays in the first-level cache
    sums = std::clamp<int64_t>(g.k / 64, 1, std::max<int64_t>(1, wanted / fewest));
    columns = std::max(fewest, std::min(n / 256, wanted / sums));
  }
  const bool in_place = row && g.alpha == 1 && g.beta == 0;
  float* y = in_place ? g.c : frame.get<float>(n);  // holds the first part of the sum, then all of it
  float* others = frame.get<float>(n * (sums - 1));
  const VectorTasks::Way way = packed ? VectorTasks::packed : dots ? VectorTasks::dots : VectorTasks::rows;
  const VectorTasks tasks{n,  g.k, x, incx, matrix, ld, y, others, static_cast<int>(columns), static_cast<int>(sums),
                          way};
  parallel_for(columns * sums, 1, tasks);
  for (int64_t s = 1; s < sums; ++s) {
    for (int64_t j = 0; j < n; ++j) y[j] += others[(s - 1) * n + j];
  }
  if (in_place) {
    finish_rows(g, 1, {0, n}, g.c);
  } else if (row) {
    store_row(g, y, n, g.c);
  } else {
    for (int64_t i = 0; i < n; ++i) store_row(g, y + i, 1, g.c + i * g.ldc);
  }
}

// Rows x columns of C with the whole sum, on the calling thread.
void run_block(const Problem& g, Range rows, Range columns) {
  float* c = g.c + rows.begin * g.ldc + columns.begin;
  dnnl_setup();
  {
    OneThread guard;
    dnnl::sgemm(g.ta ? 'T' : 'N', g.tb ? 'T' : 'N', rows.size(), columns.size(), g.k, g.alpha,
                g.a + (g.ta ? rows.begin : rows.begin * g.lda), g.lda,
                g.b + (g.tb ? columns.begin * g.ldb : columns.begin), g.ldb, g.beta, c, g.ldc);
  }
  finish_rows(g, rows.size(), columns, c);
}

void run_blocks(const Problem& g) {
  // Each block repacks its share of A and B (about 4% of the time at 512 x 512), so there are only as many as it takes
  // to keep a few threads busy, unless smaller ones fit the cache better (few rows).
  const double flops = g.flops();
  const int64_t wanted = flops < 2 * kTaskFlops ? 1 : flops < 40e6 ? 2 : flops < 4e9 ? 4 : 8;
  const int64_t side = std::max(g.m, g.n) > 1024 && std::min(g.m, g.n) > 512 ? 1024 : 512;
  int64_t down = ceil_div(g.m, side), across = ceil_div(g.n, g.m <= 128 ? 256 : side);
  if (wanted == 1) down = across = 1;
  while (down * across < wanted) {
    int64_t& longer = g.m / down > g.n / across ? down : across;
    longer *= 2;
  }
  if (int64_t& longer = down > across ? down : across; longer > 2) longer += longer % 2;  // halves for two threads
  parallel_for(down * across, 1, [&](int64_t i, int64_t) {
    const Range rows = aligned_part(g.m, down, i / across), columns = aligned_part(g.n, across, i % across);
    if (rows.size() > 0 && columns.size() > 0) run_block(g, rows, columns);
  });
}

// A long sum into a small C: parts of the sum are tasks, added in order.
bool run_split_k(const Problem& g) {
  constexpr int64_t kPart = 512;
  const int64_t parts = std::min<int64_t>(16, g.k / kPart);
  if (parts < 2 || g.m * g.n > 256 * 256 || g.k < 4 * std::max(g.m, g.n) || g.flops() < 4 * kTaskFlops) return false;
  ScratchFrame frame;
  const int64_t size = g.m * g.n;
  float* partial = frame.get<float>(parts * size);
  parallel_for(parts, 1, [&](int64_t i, int64_t) {
    const Range r = aligned_part(g.k, parts, i);
    const int64_t k0 = r.begin;
    gemm_f32(g.ta, g.tb, g.m, g.n, r.size(), 1.0f, g.a + (g.ta ? k0 * g.lda : k0), g.lda,
             g.b + (g.tb ? k0 : k0 * g.ldb), g.ldb, 0.0f, partial + i * size, g.n);
  });
  const int64_t grain = std::max<int64_t>(1, (16 << 10) / g.n);
  parallel_for(g.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 1; i < parts; ++i) {
      const float* from = partial + i * size;
      for (int64_t j = begin * g.n; j < end * g.n; ++j) partial[j] += from[j];
    }
    for (int64_t row = begin; row < end; ++row) store_row(g, partial + row * g.n, g.n, g.c + row * g.ldc);
  });
  return true;
}

// One thread's share of a product that runs at about 60 GF, and how many of them the work is cut into.
int64_t narrow_tasks(double flops, int64_t most) {
  const auto wanted = static_cast<int64_t>(flops / 0.5e6);
  return std::clamp<int64_t>(wanted > 2 ? wanted - wanted % 2 : wanted, 1, std::min<int64_t>(most, 16));
}

// Few columns: rows are cut among the threads. False where another way is better.
bool run_narrow(const Problem& g) {
  if (g.n > kNarrow || g.m < 2 * kNarrow || !has_avx2() || g.alpha != 1 || g.beta != 0) return false;
  ScratchFrame frame;
  const float* b = g.b;
  int64_t ldb = g.ldb;
  if (g.tb) {
    float* packed = frame.get<float>(g.k * g.n);
    for (int64_t p = 0; p < g.k; ++p) {
      for (int64_t j = 0; j < g.n; ++j) packed[p * g.n + j] = g.b[j * g.ldb + p];
    }
    b = packed;
    ldb = g.n;
  }
  const double flops = 2.0 * static_cast<double>(kNarrow * g.m) * static_cast<double>(g.k);
  const int64_t tasks = narrow_tasks(flops, g.m / kNarrow);
  parallel_for(tasks, 1, [&](int64_t i, int64_t) {
    const Range rows = g.ta ? aligned_part(g.m, tasks, i) : part(g.m, tasks, i);
    if (rows.size() <= 0) return;
    float* c = g.c + rows.begin * g.ldc;
    gemm_narrow(g.ta, rows.size(), g.n, g.k, g.a + (g.ta ? rows.begin : rows.begin * g.lda), g.lda, b, ldb, c, g.ldc);
    finish_rows(g, rows.size(), {0, g.n}, c);
  });
  return true;
}

// Few rows. sgemm is slow where rows of B are far apart (k = 3136, n = 1024), and where the sum is too short to pay for
// its packing (k = 10). Columns are cut among the threads; with a sum so short that writing C takes longest, rows are,
// though each thread then packs all of B: processors that write alternate parts of rows fetch each other's lines ahead
// (12 to 40 us against 7 at m = 50, n = 1024, k = 10).
bool run_skinny(const Problem& g) {
  if (g.ta || (g.tb && g.k > kShortSum) || g.m < 4 || g.m > 64 || g.n < 2 * kNarrow) return false;
  if (!has_avx2() || g.alpha != 1 || g.beta != 0) return false;
  const bool cut_rows = g.k <= kShortSum && g.n * g.k <= (16 << 10) && g.m >= 16;
  const int64_t tasks = narrow_tasks(g.flops(), cut_rows ? g.m / 8 : std::max<int64_t>(2, g.n / 256));
  parallel_for(tasks, 1, [&](int64_t i, int64_t) {
    const Range rows = cut_rows ? part(g.m, tasks, i) : Range{0, g.m};
    const Range columns = cut_rows ? Range{0, g.n} : aligned_part(g.n, tasks, i);
    if (columns.size() <= 0) return;
    ScratchFrame frame;
    float* packed = frame.get<float>(skinny_scratch(columns.size(), g.k));
    float* c = g.c + rows.begin * g.ldc + columns.begin;
    const float* b = g.b + columns.begin * (g.tb ? g.ldb : 1);
    gemm_skinny(g.tb, rows.size(), columns.size(), g.k, g.a + rows.begin * g.lda, g.lda, b, g.ldb, c, g.ldc, packed);
    finish_rows(g, rows.size(), columns, c);
  });
  return true;
}

}  // namespace

void gemm_f32(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
              const float* b, int64_t ldb, float beta, float* c, int64_t ldc, const Epilogue& epilogue) {
  if (m <= 0 || n <= 0) return;
  const Problem g{ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, epilogue};
  if (k <= 0) return finish_empty(g);
  if (m == 1 || n == 1) return run_vector(g);
  if (run_narrow(g) || run_skinny(g) || run_split_k(g)) return;
  run_blocks(g);
}

bool gemm_packs(int64_t m, int64_t n, int64_t k) {
  // What fits the second-level cache; beyond that memory is the limit however rows are aligned.
  return m == 1 && gemv_packs(n) && n * k >= (8 << 10) && n * k <= (256 << 10);
}

int64_t gemm_packed_size(int64_t n, int64_t k) { return gemv_packed_size(n, k); }

void gemm_pack(int64_t n, int64_t k, const float* b, float* packed) { gemv_pack(n, k, b, packed); }

void gemm_packed_f32(int64_t n, int64_t k, const float* a, const float* packed, float* c, const Epilogue& epilogue) {
  run_vector({false, false, 1, n, k, 1.0f, a, k, packed, n, 0.0f, c, n, epilogue}, true);
}

void gemm_batched_f32(int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                      int64_t lda, int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, float beta,
                      float* c, int64_t ldc, int64_t stride_c) {
  // Rows of all batches against one B are rows of one product.
  if (stride_b == 0 && !ta && stride_a == m * lda && stride_c == m * ldc) {
    return gemm_f32(false, tb, batch * m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  auto one = [&](int64_t i) {
    gemm_f32(ta, tb, m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb, beta, c + i * stride_c, ldc);
  };
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (batch < 8 && flops > 4 * kTaskFlops) {
    for (int64_t i = 0; i < batch; ++i) one(i);
    return;
  }
  const auto grain = std::max<int64_t>(ceil_div(batch, 64), static_cast<int64_t>(kTaskFlops / (flops + 1000.0)));
  parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

}  // namespace runnel::cpu
