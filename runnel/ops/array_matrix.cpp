// Diagonals and bands of matrices.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct AlignAttrs {
  std::string align = "RIGHT_LEFT";
  static constexpr auto fields() {
    return field_list(field("align", &AlignAttrs::align, {.texts = "LEFT_RIGHT|RIGHT_LEFT|LEFT_LEFT|RIGHT_RIGHT"}));
  }
};

// The diagonals k[0]..k[1] of a matrix of rows x cols, stored from the upper one down as rows of `length` elements.
// Shorter diagonals stand at the left or right end of their row.
struct Band {
  int64_t lower = 0, upper = 0, rows = 0, cols = 0, length = 0;
  bool right_above = true, right_below = false;  // where diagonals above and below the main one stand

  int64_t count() const { return upper - lower + 1; }
  int64_t diagonal_length(int64_t d) const {
    return std::min(cols - std::max<int64_t>(d, 0), rows + std::min<int64_t>(d, 0));
  }
  int64_t offset(int64_t d) const {
    const bool right = d >= 0 ? right_above : right_below;
    return right ? length - diagonal_length(d) : 0;
  }
  // Calls f(element of the matrix, element of the diagonals) for every element in the band.
  template <class F>
  void for_each(F f) const {
    for (int64_t d = upper; d >= lower; --d) {
      const int64_t n = diagonal_length(d), at = (upper - d) * length + offset(d);
      const int64_t first = d >= 0 ? d : -d * cols;
      for (int64_t i = 0; i < n; ++i) f(first + i * (cols + 1), at + i);
    }
  }
};

void set_align(Band& band, const std::string& align) {
  band.right_above = align.starts_with("RIGHT");
  band.right_below = align.ends_with("RIGHT");
}

void set_range(Band& band, const Dims& k) {
  if (k.empty() || k.size() > 2) throw invalid_argument("k must be one or two integers, got {}", k.size());
  band.lower = k[0];
  band.upper = k.back();
  if (band.lower > band.upper) throw invalid_argument("k [{}, {}] is no range", band.lower, band.upper);
}

// The band of a matrix of known size.
Band band_of(const Dims& k, const std::string& align, int64_t rows, int64_t cols) {
  Band band;
  set_align(band, align);
  set_range(band, k);
  band.rows = rows;
  band.cols = cols;
  for (int64_t d : {band.lower, band.upper}) {
    if (d != 0 && (d <= -rows || d >= cols)) {
      throw invalid_argument("diagonal {} lies outside a matrix of {} x {}", d, rows, cols);
    }
  }
  band.length = std::min(rows + std::min<int64_t>(band.upper, 0), cols - std::max<int64_t>(band.lower, 0));
  return band;
}

// The band whose diagonals are given: the matrix is as small as holds them unless its size is given too (-1: not).
Band band_from(const Dims& k, const std::string& align, int64_t length, int64_t rows, int64_t cols) {
  Band band;
  set_align(band, align);
  set_range(band, k);
  band.length = length;
  const int64_t least_rows = length - std::min<int64_t>(band.upper, 0);
  const int64_t least_cols = length + std::max<int64_t>(band.lower, 0);
  if (rows == -1 && cols == -1) rows = cols = std::max(least_rows, least_cols);
  band.rows = rows == -1 ? least_rows : rows;
  band.cols = cols == -1 ? least_cols : cols;
  if (band.rows < least_rows || band.cols < least_cols || (band.rows != least_rows && band.cols != least_cols)) {
    throw invalid_argument("diagonals of length {} with k [{}, {}] do not fit a matrix of {} x {}", length, band.lower,
                           band.upper, band.rows, band.cols);
  }
  return band;
}

int64_t known_or(const std::optional<Dims>& value, int64_t otherwise) { return value ? (*value)[0] : otherwise; }

// Leading dimensions of x but the last `drop`, then `tail`.
PartialShape with_tail(const PartialShape& x, int drop, std::initializer_list<int64_t> tail) {
  Dims dims(x.begin(), x.end() - drop);
  dims.insert(dims.end(), tail.begin(), tail.end());
  return PartialShape(dims);
}

void diag_shape(InferContext& c, const AlignAttrs& a) {
  c.require_rank_at_least(0, 1);
  c.require_rank(2, 0);
  c.require_rank(3, 0);
  c.require_rank(4, 0);
  const PartialShape& x = c.input(0);
  const auto k = c.constant_ints(1), rows = c.constant_ints(2), cols = c.constant_ints(3);
  if (!x.has_rank() || !k) return c.output(PartialShape::unknown());
  Band range;
  set_range(range, *k);
  const bool many = range.count() > 1;
  if (many) c.require_rank_at_least(0, 2);
  if (many && x[x.rank() - 2] >= 0 && x[x.rank() - 2] != range.count()) {
    throw invalid_argument("{} diagonals for k [{}, {}]", x[x.rank() - 2], range.lower, range.upper);
  }
  const int64_t length = x[x.rank() - 1];
  if (length < 0 || !rows || !cols) {
    return c.output(with_tail(x, many ? 2 : 1,
                              {std::max<int64_t>(known_or(rows, -1), -1), std::max<int64_t>(known_or(cols, -1), -1)}));
  }
  const Band band = band_from(*k, a.align, length, (*rows)[0], (*cols)[0]);
  c.output(with_tail(x, many ? 2 : 1, {band.rows, band.cols}));
}

// The shape of the diagonals k of matrices `x`; unknown where it must be.
PartialShape part_shape(const PartialShape& x, const std::optional<Dims>& k, const std::string& align) {
  if (!x.has_rank() || !k) return PartialShape::unknown();
  const int64_t rows = x[x.rank() - 2], cols = x[x.rank() - 1];
  Band band;
  set_align(band, align);
  set_range(band, *k);
  if (rows < 0 || cols < 0) {
    band.length = kUnknownDim;
  } else {
    band = band_of(*k, align, rows, cols);
  }
  return band.count() > 1 ? with_tail(x, 2, {band.count(), band.length}) : with_tail(x, 2, {band.length});
}

// Calls f(matrix of `whole`, diagonals of `part`) for every matrix, as offsets.
template <class F>
void for_matrices(int64_t count, int64_t matrix, int64_t part, F f) {
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, matrix));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i * matrix, i * part);
  });
}

Band band_of_matrix(const Tensor& matrix, const Dims& k, const std::string& align) {
  const Shape& s = matrix.shape();
  return band_of(k, align, s[s.rank() - 2], s[s.rank() - 1]);
}

int64_t matrices_in(const Tensor& t) {
  const Shape& s = t.shape();
  int64_t n = 1;
  for (int d = 0; d + 2 < s.rank(); ++d) n *= s[d];
  return n;
}

Tensor diag_part(const Tensor& x, const Tensor& k, const AlignAttrs& a) {
  static const Op<AlignAttrs> op("MatrixDiagPartV3");
  return op({x, k, zeros({}, x.dtype())}, a);
}
Tensor set_diag(const Tensor& x, const Tensor& diagonal, const Tensor& k, const AlignAttrs& a) {
  static const Op<AlignAttrs> op("MatrixSetDiagV3");
  return op({x, diagonal, k}, a);
}

}  // namespace

void register_array_matrix(Registry& r) {
  r.define<AlignAttrs>("MatrixDiagV3")
      .in("diagonal", data_types)
      .in_host("k", DType::int32)
      .in_host("num_rows", DType::int32)
      .in_host("num_cols", DType::int32)
      .in("padding_value")
      .out("output")
      .shape([](InferContext& c, const AlignAttrs& a) { diag_shape(c, a); })
      .cpu([](KernelContext& c, const AlignAttrs& a) {
        const Tensor& x = c.in(0);
        const Band band = band_from(c.ints(1), a.align, x.shape()[x.rank() - 1], c.int_scalar(2), c.int_scalar(3));
        const int64_t matrix = band.rows * band.cols;
        cpu::with_element(c.out().dtype(), [&]<class E>() {
          const E* from = x.data<E>();
          const E pad = *c.in<E>(4);
          E* to = c.out<E>();
          for_matrices(matrices_in(c.out()), matrix, band.count() * band.length, [&](int64_t m, int64_t p) {
            cpu::fill_run(pad, to + m, matrix);
            band.for_each([&](int64_t at, int64_t in_part) { to[m + at] = from[p + in_part]; });
          });
        });
      })
      .grad([](const GradCtx& g, const AlignAttrs& a) {
        const Tensor inside = diag_part(g.dy(), g.x(1), a);
        return Gradients{inside, {}, {}, {}, g.want(4, [&] { return reduce_sum(g.dy()) - reduce_sum(inside); })};
      })
      .doc("Matrices with the given diagonals, padding_value elsewhere.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(0), Tensor(-1), Tensor(-1), Tensor(0.f)},
               .out = {Tensor{{1.f, 0.f}, {0.f, 2.f}}}})
      .sample({.in = {Tensor{{0.f, 1.f}, {2.f, 3.f}, {4.f, 0.f}}, Tensor{-1, 1}, Tensor(-1), Tensor(-1), Tensor(9.f)},
               .out = {Tensor{{2.f, 1.f}, {4.f, 3.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(1), Tensor(3), Tensor(-1), Tensor(9.f)},
               .out = {Tensor{{9.f, 1.f, 9.f}, {9.f, 9.f, 2.f}, {9.f, 9.f, 9.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(0), Tensor(1), Tensor(-1), Tensor(9.f)},
               .error = "do not fit a matrix of 1 x 2"});

  r.define<AlignAttrs>("MatrixDiagPartV3")
      .in("input", data_types)
      .in_host("k", DType::int32)
      .in("padding_value")
      .out("diagonal")
      .shape([](InferContext& c, const AlignAttrs& a) {
        c.require_rank_at_least(0, 2);
        c.require_rank(2, 0);
        c.output(part_shape(c.input(0), c.constant_ints(1), a.align));
      })
      .cpu([](KernelContext& c, const AlignAttrs& a) {
        const Tensor& x = c.in(0);
        const Band band = band_of_matrix(x, c.ints(1), a.align);
        cpu::with_element(x.dtype(), [&]<class E>() {
          const E* from = x.data<E>();
          const E pad = *c.in<E>(2);
          E* to = c.out<E>();
          for_matrices(matrices_in(x), band.rows * band.cols, band.count() * band.length, [&](int64_t m, int64_t p) {
            cpu::fill_run(pad, to + p, band.count() * band.length);
            band.for_each([&](int64_t at, int64_t in_part) { to[p + in_part] = from[m + at]; });
          });
        });
      })
      .grad([](const GradCtx& g, const AlignAttrs& a) {
        const Tensor dx = set_diag(zeros_like(g.x(0)), g.dy(), g.x(1), a);
        return Gradients{dx, {}, g.want(2, [&] { return reduce_sum(g.dy()) - reduce_sum(dx); })};
      })
      .doc("Diagonals of matrices; shorter ones are filled up with padding_value.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor(0), Tensor(0.f)}, .out = {Tensor{1.f, 5.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{-1, 1}, Tensor(9.f)},
               .out = {Tensor{{9.f, 2.f}, {1.f, 4.f}, {3.f, 9.f}}}})
      .sample(
          {.in = {Tensor{{1.f, 2.f}}, Tensor(2), Tensor(0.f)}, .error = "diagonal 2 lies outside a matrix of 1 x 2"});

  r.define<AlignAttrs>("MatrixSetDiagV3")
      .in("input", data_types)
      .in("diagonal")
      .in_host("k", DType::int32)
      .out("output")
      .shape([](InferContext& c, const AlignAttrs& a) {
        c.require_rank_at_least(0, 2);
        const PartialShape part = part_shape(c.input(0), c.constant_ints(2), a.align);
        if (!part.compatible_with(c.input(1))) {
          throw invalid_argument("diagonal has shape {}, not {}", c.input(1).str(), part.str());
        }
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c, const AlignAttrs& a) {
        const Tensor& x = c.in(0);
        const Band band = band_of_matrix(x, c.ints(2), a.align);
        cpu::copy_elements(x.dtype(), x.raw(), c.out<char>(), x.num_elements());
        cpu::with_element(x.dtype(), [&]<class E>() {
          const E* from = c.in<E>(1);
          E* to = c.out<E>();
          for_matrices(matrices_in(x), band.rows * band.cols, band.count() * band.length, [&](int64_t m, int64_t p) {
            band.for_each([&](int64_t at, int64_t in_part) { to[m + at] = from[p + in_part]; });
          });
        });
      })
      .grad([](const GradCtx& g, const AlignAttrs& a) {
        return Gradients{g.want(0, [&] { return set_diag(g.dy(), zeros_like(g.x(1)), g.x(2), a); }),
                         g.want(1, [&] { return diag_part(g.dy(), g.x(2), a); }),
                         {}};
      })
      .doc("Matrices with some diagonals replaced.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{8.f, 9.f}, Tensor(0)},
               .out = {Tensor{{8.f, 2.f}, {3.f, 9.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{0.f, 7.f}, {8.f, 9.f}}, Tensor{0, 1}},
               .out = {Tensor{{8.f, 7.f}, {3.f, 9.f}}}})
      .sample(
          {.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{8.f}, Tensor(0)}, .error = "diagonal has shape [1], not [2]"});

  r.define("MatrixBandPart")
      .in("input", data_types)
      .type("Tindex", index_types, DType::int64)
      .in_host("num_lower", "Tindex")
      .in_host("num_upper", "Tindex")
      .out("band")
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 2);
        c.require_rank(1, 0);
        c.require_rank(2, 0);
        const PartialShape& x = c.input(0);
        for (int i = 1; x.has_rank() && i < 3; ++i) {
          const auto n = c.constant_ints(i);
          const int64_t size = x[x.rank() - 3 + i];
          if (n && size >= 0 && (*n)[0] > size) {
            throw invalid_argument("{} {} exceeds the matrix: {}", i == 1 ? "num_lower" : "num_upper", (*n)[0],
                                   x.str());
          }
        }
        c.output(x);
      })
      .cpu([](KernelContext& c) {
        const Tensor& x = c.in(0);
        const int64_t rows = x.shape()[x.rank() - 2], cols = x.shape()[x.rank() - 1];
        const int64_t lower = c.int_scalar(1), upper = c.int_scalar(2);
        cpu::with_element(x.dtype(), [&]<class E>() {
          const E* from = x.data<E>();
          E* to = c.out<E>();
          for_matrices(matrices_in(x), rows * cols, 0, [&](int64_t m, int64_t) {
            for (int64_t i = 0; i < rows; ++i) {
              const int64_t row = m + i * cols;
              const int64_t begin = lower < 0 ? 0 : std::clamp<int64_t>(i - lower, 0, cols);
              const int64_t end = upper < 0 ? cols : std::clamp<int64_t>(i + upper + 1, begin, cols);
              cpu::fill_run(E{}, to + row, begin);
              cpu::copy_run(from + row + begin, to + row + begin, end - begin);
              cpu::fill_run(E{}, to + row + end, cols - end);
            }
          });
        });
      })
      .grad([](const GradCtx& g) {
        static const Op op("MatrixBandPart");
        return Gradients{op({g.dy(), g.x(1), g.x(2)}), {}, {}};
      })
      .doc(
          "Matrices with zeros outside a band: num_lower diagonals below the main one and num_upper above it stay "
          "(negative: all).")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}, {7.f, 8.f, 9.f}}, Tensor(1), Tensor(0)},
               .out = {Tensor{{1.f, 0.f, 0.f}, {4.f, 5.f, 0.f}, {0.f, 8.f, 9.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor(0), Tensor(-1)}, .out = {Tensor{{1.f, 2.f}, {0.f, 4.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor(2), Tensor(0)}, .error = "num_lower 2 exceeds the matrix"});
}

namespace {

Tensor k_of(const MatrixDiagOptions& o) { return constant_ints_of(Dims(o.k.begin(), o.k.end()), DType::int32); }
Tensor size32(int64_t n) { return constant_ints_of({n}, DType::int32).with_shape({}); }
Tensor padding_of(const MatrixDiagOptions& o, DType dtype) {
  return o.padding_value.defined() ? o.padding_value : zeros({}, dtype);
}

}  // namespace

Tensor matrix_diag(const Operand& diagonal, const MatrixDiagOptions& options) {
  return composed(diagonal.where(), [&]() -> Tensor {
    static const Op<AlignAttrs> op("MatrixDiagV3");
    const Tensor x = diagonal.value();
    return op({Operand(x, diagonal.where()), k_of(options), size32(options.num_rows), size32(options.num_cols),
               padding_of(options, x.dtype())},
              {.align = options.align});
  });
}

Tensor matrix_diag_part(const Operand& input, const MatrixDiagOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op<AlignAttrs> op("MatrixDiagPartV3");
    const Tensor x = input.value();
    return op({Operand(x, input.where()), k_of(options), padding_of(options, x.dtype())}, {.align = options.align});
  });
}

Tensor matrix_set_diag(const Operand& input, const Operand& diagonal, const MatrixDiagOptions& options) {
  static const Op<AlignAttrs> op("MatrixSetDiagV3");
  return op({input, diagonal, k_of(options)}, {.align = options.align});
}

Tensor matrix_band_part(const Operand& input, int64_t num_lower, int64_t num_upper) {
  static const Op op("MatrixBandPart");
  Tensor bounds[] = {int_scalar(num_lower), int_scalar(num_upper)};
  unify_index_types(bounds);
  return op({input, bounds[0], bounds[1]});
}

}  // namespace runnel
