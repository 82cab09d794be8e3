#include "runnel/kernels/cpu/broadcast.h"

#include <algorithm>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"

namespace runnel::cpu {

BroadcastPlan make_broadcast_plan(Dims out, std::initializer_list<Dims> operands) {
  BroadcastPlan plan;
  plan.operands = static_cast<int>(operands.size());
  plan.size = num_elements(out);
  // Built from the innermost dimension outwards, then reversed.
  int64_t steps[BroadcastPlan::kMaxOperands] = {1, 1, 1};
  const int out_rank = static_cast<int>(out.size());
  for (int back = 1; back <= out_rank; ++back) {
    const int64_t d = out[out_rank - back];
    if (d == 1) continue;
    int64_t stride[BroadcastPlan::kMaxOperands];
    bool merges = plan.rank > 0;
    int k = 0;
    for (const Dims& shape : operands) {
      const int rank = static_cast<int>(shape.size());
      const int64_t size = back <= rank ? shape[rank - back] : 1;
      if (size != 1 && size != d) {
        throw make_error(Code::internal, "broadcast of {} to {}", fmt::join(shape, "x"), fmt::join(out, "x"));
      }
      stride[k] = size == 1 ? 0 : steps[k];
      steps[k] *= size;
      if (merges) {
        const int last = plan.rank - 1;
        merges = stride[k] == plan.strides[k][last] * plan.dims[last];
      }
      ++k;
    }
    if (merges) {
      plan.dims[plan.rank - 1] *= d;
      continue;
    }
    if (plan.rank == BroadcastPlan::kMaxRank) {
      throw make_error(Code::unimplemented, "broadcast to {}: too many dimensions", fmt::join(out, "x"));
    }
    plan.dims[plan.rank] = d;
    for (int i = 0; i < plan.operands; ++i) plan.strides[i][plan.rank] = stride[i];
    ++plan.rank;
  }
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.dims[0] = 1;
    for (int i = 0; i < plan.operands; ++i) plan.strides[i][0] = 1;
  }
  std::reverse(plan.dims, plan.dims + plan.rank);
  for (int i = 0; i < plan.operands; ++i) std::reverse(plan.strides[i], plan.strides[i] + plan.rank);
  return plan;
}

namespace {

constexpr int64_t kSmallRow = 48;    // rows shorter than this are worth copying together
constexpr int64_t kBlock = 512;      // elements expanded at a time
constexpr int64_t kMaxElement = 16;  // complex128

// Walks rows (all dimensions but the last) in order, keeping every operand's element offset.
class RowCursor {
 public:
  RowCursor(const BroadcastPlan& plan, int64_t row) : plan_(plan) {
    for (int d = plan.rank - 2; d >= 0; --d) {
      index_[d] = row % plan.dims[d];
      row /= plan.dims[d];
      for (int k = 0; k < plan.operands; ++k) offset_[k] += index_[d] * plan.strides[k][d];
    }
  }
  int64_t offset(int operand) const { return offset_[operand]; }
  // Rows left in the innermost run, along which every operand moves by a fixed stride.
  int64_t run() const { return plan_.rank < 2 ? 1 : plan_.dims[plan_.rank - 2] - index_[plan_.rank - 2]; }
  void advance(int64_t rows) {  // by at most run()
    int d = plan_.rank - 2;
    if (d < 0) return;
    move(d, rows);
    while (index_[d] == plan_.dims[d] && d > 0) {
      move(d, -plan_.dims[d]);
      move(--d, 1);
    }
  }

 private:
  void move(int d, int64_t by) {
    index_[d] += by;
    for (int k = 0; k < plan_.operands; ++k) offset_[k] += by * plan_.strides[k][d];
  }

  const BroadcastPlan& plan_;
  int64_t index_[BroadcastPlan::kMaxRank] = {};
  int64_t offset_[BroadcastPlan::kMaxOperands] = {};
};

// Calls body(cursor, row_begin, row_end, begin, end) so that the pieces [row_begin, row_end) x [begin, end)
// of rows x inner cover the output, in parallel, cut by shape alone. A piece of several rows has whole rows.
template <class Body>
void for_pieces(const BroadcastPlan& plan, const Body& body) {
  if (plan.size == 0) return;
  const int64_t inner = plan.dims[plan.rank - 1];
  const int64_t rows = plan.size / inner;
  if (plan.size <= kGrain) return body(RowCursor(plan, 0), 0, rows, 0, inner);
  const int64_t segments = (inner + kGrain - 1) / kGrain;
  if (segments == 1) {
    parallel_for(rows, kGrain / inner,
                 [&](int64_t begin, int64_t end) { body(RowCursor(plan, begin), begin, end, 0, inner); });
    return;
  }
  parallel_for(rows * segments, 1, [&](int64_t task, int64_t) {
    const int64_t row = task / segments;
    const int64_t begin = task % segments * kGrain;
    body(RowCursor(plan, row), row, row + 1, begin, std::min(inner, begin + kGrain));
  });
}

template <class T>
void expand(const T* x, int64_t row_stride, int64_t stride, int64_t rows, int64_t cols, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += row_stride, y += cols) {
    if (stride == 0) {
      std::fill(y, y + cols, *x);
    } else {
      for (int64_t c = 0; c < cols; ++c) y[c] = x[c];
    }
  }
}

struct Element16 {
  uint64_t words[2];
};

void expand(const void* x, int64_t row_stride, int64_t stride, int64_t rows, int64_t cols, void* y, int size) {
  const auto as = [&](auto element) {
    using T = decltype(element);
    expand(static_cast<const T*>(x), row_stride, stride, rows, cols, static_cast<T*>(y));
  };
  switch (size) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    case 8: return as(uint64_t{});
    case 16: return as(Element16{});
    default: throw make_error(Code::internal, "broadcast of elements of {} bytes", size);
  }
}

// One operand, presented as contiguous blocks: its own memory where it is contiguous, else an expanded copy,
// which is kept while the next block would be the same.
class Expanded {
 public:
  Expanded(const BroadcastPlan& plan, int operand, const void* data, int size)
      : data_(static_cast<const char*>(data)),
        size_(size),
        stride_(plan.strides[operand][plan.rank - 1]),
        row_stride_(plan.rank < 2 ? 0 : plan.strides[operand][plan.rank - 2]) {}

  const void* block(int64_t offset, int64_t rows, int64_t begin, int64_t cols) {
    const char* x = data_ + (offset + begin * stride_) * size_;
    if (stride_ == 1 && (rows == 1 || row_stride_ == cols)) return x;
    const bool kept = x == last_ && rows <= last_rows_ && cols == last_cols_;
    const bool kept_scalar = x == last_ && stride_ == 0 && (rows == 1 || row_stride_ == 0) && last_uniform_ &&
                             rows * cols <= last_rows_ * last_cols_;
    if (kept || kept_scalar) return scratch_;
    expand(x, row_stride_, stride_, rows, cols, scratch_, size_);
    last_ = x;
    last_rows_ = rows;
    last_cols_ = cols;
    last_uniform_ = stride_ == 0 && (rows == 1 || row_stride_ == 0);
    return scratch_;
  }

 private:
  const char* data_;
  int size_;
  int64_t stride_, row_stride_;
  const char* last_ = nullptr;
  int64_t last_rows_ = 0, last_cols_ = 0;
  bool last_uniform_ = false;
  alignas(64) char scratch_[kBlock * kMaxElement];
};

// Cuts a piece into blocks of at most kBlock elements (whole rows of one run, or a part of one row).
template <class Body>
void for_blocks(RowCursor cursor, int64_t row, int64_t row_end, int64_t begin, int64_t end, int64_t inner,
                const Body& body) {
  const int64_t max_rows = std::max<int64_t>(1, kBlock / inner);
  while (row < row_end) {
    const int64_t rows = std::min({max_rows, row_end - row, cursor.run()});
    for (int64_t c = begin; c < end; c += kBlock) {
      body(cursor, rows, row * inner + c, c, std::min(kBlock, end - c));
    }
    cursor.advance(rows);
    row += rows;
  }
}

void binary_rows(const BroadcastPlan& plan, BinaryKernel kernel, const char* a, const char* b, char* y, int in_size,
                 int out_size, const void* attrs) {
  const int64_t inner = plan.dims[plan.rank - 1];
  const int64_t a_step = plan.strides[0][plan.rank - 1] * in_size;
  const int64_t b_step = plan.strides[1][plan.rank - 1] * in_size;
  for_pieces(plan, [&](RowCursor cursor, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
    for (; row < row_end; ++row) {
      kernel(a + cursor.offset(0) * in_size + begin * a_step, b + cursor.offset(1) * in_size + begin * b_step,
             y + (row * inner + begin) * out_size, end - begin, attrs);
      cursor.advance(1);
    }
  });
}

}  // namespace

void run_binary_broadcast(const BroadcastPlan& plan, const BinaryKernels& kernels, const void* ap, const void* bp,
                          void* yp, int in_size, int out_size, const void* attrs) {
  const char* a = static_cast<const char*>(ap);
  const char* b = static_cast<const char*>(bp);
  char* y = static_cast<char*>(yp);
  const int64_t inner = plan.dims[plan.rank - 1];
  const int64_t a_stride = plan.strides[0][plan.rank - 1];
  const int64_t b_stride = plan.strides[1][plan.rank - 1];
  const bool expands = (a_stride == 0 && b_stride == 0) || (plan.rank > 1 && inner < kSmallRow);
  if (!expands) {
    const BinaryKernel kernel = a_stride == 0 ? kernels.sv : b_stride == 0 ? kernels.vs : kernels.vv;
    return binary_rows(plan, kernel, a, b, y, in_size, out_size, attrs);
  }
  for_pieces(plan, [&](const RowCursor& first, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
    Expanded ea(plan, 0, a, in_size), eb(plan, 1, b, in_size);
    for_blocks(first, row, row_end, begin, end, inner,
               [&](const RowCursor& cursor, int64_t rows, int64_t at, int64_t c, int64_t cols) {
                 kernels.vv(ea.block(cursor.offset(0), rows, c, cols), eb.block(cursor.offset(1), rows, c, cols),
                            y + at * out_size, rows * cols, attrs);
               });
  });
}

void run_ternary_broadcast(const BroadcastPlan& plan, TernaryKernel kernel, const void* a, int a_size, const void* b,
                           int b_size, const void* c, int c_size, void* yp, int y_size, const void* attrs) {
  if (plan.is_flat(0, 1) && plan.is_flat(1, 1) && plan.is_flat(2, 1)) {
    if (plan.size <= kGrain) return kernel(a, b, c, yp, plan.size, attrs);
    return run_ternary(kernel, a, a_size, b, b_size, c, c_size, yp, y_size, plan.size, attrs);
  }
  char* y = static_cast<char*>(yp);
  const int64_t inner = plan.dims[plan.rank - 1];
  for_pieces(plan, [&](const RowCursor& first, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
    Expanded ea(plan, 0, a, a_size), eb(plan, 1, b, b_size), ec(plan, 2, c, c_size);
    for_blocks(first, row, row_end, begin, end, inner,
               [&](const RowCursor& cursor, int64_t rows, int64_t at, int64_t col, int64_t cols) {
                 kernel(ea.block(cursor.offset(0), rows, col, cols), eb.block(cursor.offset(1), rows, col, cols),
                        ec.block(cursor.offset(2), rows, col, cols), y + at * y_size, rows * cols, attrs);
               });
  });
}

void broadcast_to(const void* xp, Dims x_shape, void* yp, Dims y_shape, int size) {
  const BroadcastPlan plan = make_broadcast_plan(y_shape, {x_shape});
  const char* x = static_cast<const char*>(xp);
  char* y = static_cast<char*>(yp);
  const int64_t inner = plan.dims[plan.rank - 1];
  const int64_t stride = plan.strides[0][plan.rank - 1];
  const int64_t row_stride = plan.rank < 2 ? 0 : plan.strides[0][plan.rank - 2];
  for_pieces(plan, [&](RowCursor cursor, int64_t row, int64_t row_end, int64_t begin, int64_t end) {
    while (row < row_end) {
      const int64_t rows = std::min(row_end - row, cursor.run());
      expand(x + (cursor.offset(0) + begin * stride) * size, row_stride, stride, rows, end - begin,
             y + (row * inner + begin) * size, size);
      cursor.advance(rows);
      row += rows;
    }
  });
}

}  // namespace runnel::cpu
