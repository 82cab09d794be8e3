#include "runnel/kernels/cpu/segment.h"

#include <algorithm>
#include <complex>
#include <memory>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kTask = 32768;  // elements worth a task of their own

template <class T>
auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<std::common_type_t<T, int>>>(x);
  } else {
    return x;
  }
}

struct Add {
  template <class C>
  C operator()(C a, C b) const {
    return static_cast<C>(wrapping(a) + wrapping(b));
  }
};
struct Multiply {
  template <class C>
  C operator()(C a, C b) const {
    return static_cast<C>(wrapping(a) * wrapping(b));
  }
};
struct Larger {
  template <class C>
  C operator()(C a, C b) const {
    return b > a || b != b ? b : a;
  }
};
struct Smaller {
  template <class C>
  C operator()(C a, C b) const {
    return b < a || b != b ? b : a;
  }
};

// The rows of every segment: order[begin[s]] ... order[begin[s + 1] - 1], in their order.
struct RowsBySegment {
  std::vector<int64_t> begin;
  std::vector<int64_t> order;

  RowsBySegment(const int64_t* ids, int64_t rows, int64_t segments) : begin(static_cast<size_t>(segments) + 1, 0) {
    int64_t kept = 0;
    for (int64_t i = 0; i < rows; ++i) {
      if (ids[i] < 0) continue;
      ++begin[static_cast<size_t>(ids[i]) + 1];
      ++kept;
    }
    for (size_t s = 1; s < begin.size(); ++s) begin[s] += begin[s - 1];
    order.resize(static_cast<size_t>(kept));
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    for (int64_t i = 0; i < rows; ++i) {
      if (ids[i] >= 0) order[static_cast<size_t>(next[static_cast<size_t>(ids[i])]++)] = i;
    }
  }
};

template <class C>
C divided(C sum, int64_t count) {
  if constexpr (std::is_integral_v<C>) {
    using Wide = std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>;
    return static_cast<C>(static_cast<Wide>(sum) / static_cast<Wide>(count));
  } else {
    return sum / static_cast<C>(count);
  }
}

template <class Fold, class T>
void run(bool mean, const T* x, const int64_t* ids, int64_t rows, int64_t width, int64_t segments, T empty, T* y) {
  using C = compute_t<T>;
  if (segments == 0 || width == 0) return;
  const RowsBySegment by(ids, rows, segments);
  const int64_t work = std::max<int64_t>(1, (rows + segments) * width / segments);
  parallel_for(segments, std::max<int64_t>(1, kTask / work), [&](int64_t first, int64_t last) {
    std::unique_ptr<C[]> wide;
    if constexpr (is_half<T>) wide = std::make_unique_for_overwrite<C[]>(static_cast<size_t>(width));
    for (int64_t s = first; s < last; ++s) {
      T* out = y + s * width;
      const int64_t begin = by.begin[static_cast<size_t>(s)];
      const int64_t end = by.begin[static_cast<size_t>(s) + 1];
      if (begin == end) {
        std::fill(out, out + width, empty);
        continue;
      }
      C* sum;
      if constexpr (is_half<T>) {
        sum = wide.get();
      } else {
        sum = out;
      }
      const T* row = x + by.order[static_cast<size_t>(begin)] * width;
      for (int64_t j = 0; j < width; ++j) sum[j] = static_cast<C>(row[j]);
      for (int64_t i = begin + 1; i < end; ++i) {
        row = x + by.order[static_cast<size_t>(i)] * width;
        for (int64_t j = 0; j < width; ++j) sum[j] = Fold{}(sum[j], static_cast<C>(row[j]));
      }
      if (mean) {
        for (int64_t j = 0; j < width; ++j) sum[j] = divided(sum[j], end - begin);
      }
      if constexpr (is_half<T>) convert_block(sum, out, width);
    }
  });
}

}  // namespace

template <class T>
void segment_reduce(SegmentOp op, const T* x, const int64_t* ids, int64_t rows, int64_t width, int64_t segments,
                    T empty, T* y) {
  if (op == SegmentOp::sum || op == SegmentOp::mean) {
    return run<Add>(op == SegmentOp::mean, x, ids, rows, width, segments, empty, y);
  }
  if (op == SegmentOp::prod) return run<Multiply>(false, x, ids, rows, width, segments, empty, y);
  if constexpr (std::is_arithmetic_v<compute_t<T>>) {
    if (op == SegmentOp::max) return run<Larger>(false, x, ids, rows, width, segments, empty, y);
    if (op == SegmentOp::min) return run<Smaller>(false, x, ids, rows, width, segments, empty, y);
  }
  throw make_error(Code::unimplemented, "segment operation {} has no kernel for this type", static_cast<int>(op));
}

#define RUNNEL_SEGMENT(T) \
  template void segment_reduce(SegmentOp, const T*, const int64_t*, int64_t, int64_t, int64_t, T, T*);
RUNNEL_SEGMENT(float)
RUNNEL_SEGMENT(double)
RUNNEL_SEGMENT(Half)
RUNNEL_SEGMENT(BFloat16)
RUNNEL_SEGMENT(int8_t)
RUNNEL_SEGMENT(int16_t)
RUNNEL_SEGMENT(int32_t)
RUNNEL_SEGMENT(int64_t)
RUNNEL_SEGMENT(uint8_t)
RUNNEL_SEGMENT(uint16_t)
RUNNEL_SEGMENT(uint32_t)
RUNNEL_SEGMENT(uint64_t)
RUNNEL_SEGMENT(std::complex<float>)
RUNNEL_SEGMENT(std::complex<double>)

}  // namespace runnel::cpu
