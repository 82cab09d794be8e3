#include "runnel/kernels/cpu/reduce.h"

#include <algorithm>
#include <complex>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/base/small_vector.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/reduce_kernels.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {
namespace {

using detail::ReduceKernels;

constexpr int64_t kRowChunk = 8192;         // contiguous elements folded in one go
constexpr int64_t kTask = 32768;            // elements worth a task of their own
constexpr int64_t kColumnTask = 4 * kTask;  // of columns, whose parts are as long as the result
constexpr int64_t kColumnTile = 4096;       // columns folded together
constexpr int64_t kFewRows = 512;           // rows folded into one accumulator row
constexpr int64_t kNarrow = 32;             // below this, several rows are treated as one wider row
constexpr int64_t kWide = 64;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One row of any length; the shape of the tree depends on n alone.
template <class T>
T fold_long_row(const ReduceKernels<T>& k, const T* x, int64_t n) {
  if (n <= kRowChunk) return k.row(x, n);
  const int64_t chunks = ceil_div(n, kRowChunk);
  ScratchFrame scratch;
  T* partials = scratch.get<T>(chunks);
  for (int64_t c = 0; c < chunks; ++c) {
    partials[c] = k.row(x + c * kRowChunk, std::min(kRowChunk, n - c * kRowChunk));
  }
  return fold_long_row<T>(k, partials, chunks);
}

template <class T>
void reduce_rows(const ReduceKernels<T>& k, const T* x, int64_t outer, int64_t n, T* y) {
  if (outer * n <= kTask) {
    for (int64_t o = 0; o < outer; ++o) y[o] = fold_long_row(k, x + o * n, n);
    return;
  }
  if (n <= kTask) {
    parallel_for(outer, std::max<int64_t>(1, kTask / n), [&](int64_t begin, int64_t end) {
      if (n <= kRowChunk) return k.rows(x + begin * n, end - begin, n, y + begin);
      for (int64_t o = begin; o < end; ++o) y[o] = fold_long_row(k, x + o * n, n);
    });
    return;
  }
  // Long rows: the same chunks as fold_long_row makes, several to a task.
  const int64_t chunks = ceil_div(n, kRowChunk);
  ScratchFrame scratch;
  T* partials = scratch.get<T>(outer * chunks);
  parallel_for(outer * chunks, kTask / kRowChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % chunks * kRowChunk;
      partials[i] = k.row(x + i / chunks * n + at, std::min(kRowChunk, n - at));
    }
  });
  for (int64_t o = 0; o < outer; ++o) y[o] = fold_long_row<T>(k, partials + o * chunks, chunks);
}

// y (set to the identity, or a result so far) folded with `rows` rows of `cols` <= kColumnTile elements.
template <class T>
void fold_rows(const ReduceKernels<T>& k, const T* x, int64_t rows, int64_t stride, int64_t cols, T* y) {
  if (cols < kNarrow && stride == cols && rows >= 2 * (kWide / cols)) {
    const int64_t group = kWide / cols;
    T wide[kWide];
    std::fill(wide, wide + group * cols, k.identity);
    k.columns(x, rows / group, group * cols, group * cols, wide);
    k.columns(wide, group, cols, cols, y);
    k.columns(x + rows / group * group * cols, rows % group, cols, cols, y);
    return;
  }
  if (rows <= kFewRows) return k.columns(x, rows, stride, cols, y);
  ScratchFrame scratch;
  T* partial = scratch.get<T>(cols);
  for (int64_t i = 0; i < rows; i += kFewRows) {
    std::fill(partial, partial + cols, k.identity);
    k.columns(x + i * stride, std::min(kFewRows, rows - i), stride, cols, partial);
    k.columns(partial, 1, cols, cols, y);
  }
}

template <class T>
void reduce_columns(const ReduceKernels<T>& k, const T* x, int64_t outer, int64_t rows, int64_t cols, T* y) {
  std::fill(y, y + outer * cols, k.identity);
  const int64_t tiles = ceil_div(cols, kColumnTile);
  const int64_t chunk = std::max<int64_t>(64, kColumnTask / cols);  // rows per task where rows are cut
  const int64_t chunks = ceil_div(rows, chunk);
  if (tiles > 1 || chunks == 1 || outer >= 64) {
    const int64_t work = rows * std::min(cols, kColumnTile);
    const auto body = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / tiles, at = i % tiles * kColumnTile;
        fold_rows(k, x + o * rows * cols + at, rows, cols, std::min(kColumnTile, cols - at), y + o * cols + at);
      }
    };
    if (outer * rows * cols <= kTask) return body(0, outer * tiles);
    return parallel_for(outer * tiles, std::max<int64_t>(1, kTask / work), body);
  }
  // Half a page off the rows of x: where rows are a multiple of a page long, eight of them fill a set of the
  // first-level cache, and the row of sums must stand in another.
  constexpr int64_t kPage = 4096;
  ScratchFrame scratch;
  T* partials = scratch.get<T>(outer * chunks * cols + kPage / static_cast<int64_t>(sizeof(T)));
  const auto off = (reinterpret_cast<uintptr_t>(x) + kPage / 2 - reinterpret_cast<uintptr_t>(partials)) % kPage;
  partials += off / sizeof(T);
  parallel_for(outer * chunks, 1, [&](int64_t i, int64_t) {
    T* partial = partials + i * cols;
    std::fill(partial, partial + cols, k.identity);
    const int64_t o = i / chunks, row = i % chunks * chunk;
    fold_rows(k, x + (o * rows + row) * cols, std::min(chunk, rows - row), cols, cols, partial);
  });
  for (int64_t o = 0; o < outer; ++o) {
    fold_rows<T>(k, partials + o * chunks * cols, chunks, cols, cols, y + o * cols);
  }
}

// The shape as alternating runs of kept and reduced dimensions, those of size 1 dropped.
struct Runs {
  SmallVector<int64_t, 8> sizes;
  SmallVector<bool, 8> reduced;
  int64_t kept_elements = 1;
  int64_t reduced_elements = 1;
};

Runs make_runs(Dims shape, Dims axes) {
  Runs runs;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool r = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    (r ? runs.reduced_elements : runs.kept_elements) *= shape[d];
    if (shape[d] == 1) continue;
    if (!runs.sizes.empty() && runs.reduced.back() == r) {
      runs.sizes.back() *= shape[d];
    } else {
      runs.sizes.push_back(shape[d]);
      runs.reduced.push_back(r);
    }
  }
  return runs;
}

// Folds the innermost reduced run first; every pass leaves less to read.
template <class T>
void run_passes(const ReduceKernels<T>& k, const T* x, Runs runs, T* y) {
  int passes = static_cast<int>(std::count(runs.reduced.begin(), runs.reduced.end(), true));
  if (runs.kept_elements == 0) return;
  if (runs.reduced_elements == 0) return std::fill(y, y + runs.kept_elements, k.identity), void();
  if (passes == 0) return std::copy(x, x + runs.kept_elements, y), void();
  ScratchFrame scratch;
  while (passes > 0) {
    size_t at = runs.sizes.size() - 1;
    while (!runs.reduced[at]) --at;
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < at; ++i) outer *= runs.sizes[i];
    for (size_t i = at + 1; i < runs.sizes.size(); ++i) inner *= runs.sizes[i];
    const int64_t n = runs.sizes[at];
    T* out = passes > 1 ? scratch.get<T>(outer * inner) : y;
    if (inner == 1) {
      reduce_rows(k, x, outer, n, out);
    } else {
      reduce_columns(k, x, outer, n, inner, out);
    }
    runs.sizes.erase(runs.sizes.begin() + at);
    runs.reduced.erase(runs.reduced.begin() + at);
    x = out;
    --passes;
  }
}

template <class Op, class T>
void run(const T* x, const Runs& runs, T* y) {
  // Sums and products of integers wrap: computed unsigned.
  constexpr bool wraps = std::is_same_v<Op, detail::SumOp> || std::is_same_v<Op, detail::ProdOp>;
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T> && wraps) {
    using U = std::make_unsigned_t<T>;
    run<Op>(reinterpret_cast<const U*>(x), runs, reinterpret_cast<U*>(y));
  } else {
    run_passes(detail::reduce_kernels<Op, T>(), x, runs, y);
  }
}

template <class T>
void divide(T* y, int64_t n, int64_t by) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    for (int64_t i = 0; i < n; ++i) y[i] = by == 0 ? T(0) : static_cast<T>(y[i] / static_cast<Wide>(by));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = y[i] / static_cast<T>(by);
  }
}

template <class Small>
void reduce_half(Reduction op, const Small* x, Dims shape, Dims axes, Small* y) {
  const Runs runs = make_runs(shape, axes);
  const int64_t n = runs.kept_elements * runs.reduced_elements;
  ScratchFrame scratch;
  float* wide = scratch.get<float>(n);
  parallel_for(n, kTask, [&](int64_t begin, int64_t end) { convert_block(x + begin, wide + begin, end - begin); });
  float* result = scratch.get<float>(runs.kept_elements);
  reduce<float>(op, wide, shape, axes, result);
  convert_block(result, y, runs.kept_elements);
}

}  // namespace

template <class T>
void reduce(Reduction op, const T* x, Dims shape, Dims axes, T* y) {
  if constexpr (is_half<T>) {
    return reduce_half(op, x, shape, axes, y);
  } else if constexpr (std::is_same_v<T, bool>) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(x);
    const Runs runs = make_runs(shape, axes);
    if (op == Reduction::any) return run<detail::AnyOp>(bytes, runs, reinterpret_cast<uint8_t*>(y));
    if (op == Reduction::all) return run<detail::AllOp>(bytes, runs, reinterpret_cast<uint8_t*>(y));
  } else {
    const Runs runs = make_runs(shape, axes);
    if (op == Reduction::sum) return run<detail::SumOp>(x, runs, y);
    if (op == Reduction::prod) return run<detail::ProdOp>(x, runs, y);
    if (op == Reduction::mean) {
      run<detail::SumOp>(x, runs, y);
      return divide(y, runs.kept_elements, runs.reduced_elements);
    }
    if constexpr (std::is_arithmetic_v<T>) {
      if (op == Reduction::max) return run<detail::MaxOp>(x, runs, y);
      if (op == Reduction::min) return run<detail::MinOp>(x, runs, y);
    }
  }
  throw make_error(Code::unimplemented, "reduction {} has no kernel for this type", static_cast<int>(op));
}

#define RUNNEL_REDUCE(T) template RUNNEL_API void reduce(Reduction, const T*, Dims, Dims, T*);
RUNNEL_REDUCE(float)
RUNNEL_REDUCE(double)
RUNNEL_REDUCE(Half)
RUNNEL_REDUCE(BFloat16)
RUNNEL_REDUCE(int8_t)
RUNNEL_REDUCE(int16_t)
RUNNEL_REDUCE(int32_t)
RUNNEL_REDUCE(int64_t)
RUNNEL_REDUCE(uint8_t)
RUNNEL_REDUCE(uint16_t)
RUNNEL_REDUCE(uint32_t)
RUNNEL_REDUCE(uint64_t)
RUNNEL_REDUCE(bool)
RUNNEL_REDUCE(std::complex<float>)
RUNNEL_REDUCE(std::complex<double>)

}  // namespace runnel::cpu
