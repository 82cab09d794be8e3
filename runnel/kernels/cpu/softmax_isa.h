// One row of softmax for one instruction set (see foreach_isa.h). The tail is a vector whose spare lanes are
// made harmless, so every element passes through the same code.

RUNNEL_ISA_TARGET float row_max(const float* x, int64_t n) {
  const float lowest = -std::numeric_limits<float>::infinity();
  F a = splat(lowest), b = a;
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    a = max_nan(load(x + i), a);
    b = max_nan(load(x + i + W), b);
  }
  for (; i + W <= n; i += W) a = max_nan(load(x + i), a);
  if (i < n) a = max_nan(select(first_lanes(n - i), load_n(x + i, n - i), splat(lowest)), a);
  return max_nan(max_nan(b, a));
}

// The sum of exp(x - shift); where y is given, the exponentials are stored there.
RUNNEL_ISA_TARGET float row_exp(const float* x, float* y, int64_t n, float shift) {
  F a = {}, b = {};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    const F e = exp(load(x + i) - shift), f = exp(load(x + i + W) - shift);
    if (y) {
      store(y + i, e);
      store(y + i + W, f);
    }
    a += e;
    b += f;
  }
  for (; i + W <= n; i += W) {
    const F e = exp(load(x + i) - shift);
    if (y) store(y + i, e);
    a += e;
  }
  if (i < n) {
    const F e = exp(load_n(x + i, n - i) - shift);
    if (y) store_n(y + i, e, n - i);
    b += select(first_lanes(n - i), e, F{});
  }
  return sum(a + b);
}

// Softmax of rows of at most two vectors, which stay in registers.
RUNNEL_ISA_TARGET void narrow_softmax(const float* x, float* y, int64_t rows, int64_t n) {
  const int64_t first = n < W ? n : W, second = n - first;
  const F lowest = splat(-std::numeric_limits<float>::infinity());
  const I has_first = first_lanes(first), has_second = first_lanes(second);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const F a = first == W ? load(x) : select(has_first, load_n(x, first), lowest);
    const F b = second == 0 ? lowest : select(has_second, load_n(x + W, second), lowest);
    const float most = max_nan(max_nan(b, a));
    // The spare lanes hold what exp is fast for.
    const F pa = select(has_first, a, splat(most)), pb = select(has_second, b, splat(most));
    const F ea = select(has_first, exp(pa - most), F{}), eb = select(has_second, exp(pb - most), F{});
    const float scale = 1.0f / sum(ea + eb);
    if (first == W) {
      store(y, ea * scale);
    } else {
      store_n(y, ea * scale, first);
    }
    if (second > 0) store_n(y + W, eb * scale, second);
  }
}
inline constexpr int64_t kNarrowSoftmax = 2 * W;

// y = x * scale - offset
RUNNEL_ISA_TARGET void row_affine(const float* x, float* y, int64_t n, float scale, float offset) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, load(x + i) * scale - offset);
  if (i < n) store_n(y + i, load_n(x + i, n - i) * scale - offset, n - i);
}

// The sum of weights * (shift - x); a weight of 0 counts as nothing, whatever x is.
RUNNEL_ISA_TARGET float row_weighted(const float* x, const float* weights, int64_t n, float shift) {
  F a = {};
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const F w = load(weights + i);
    a += select(w == 0.0f, F{}, w * (shift - load(x + i)));
  }
  if (i < n) {
    const F w = load_n(weights + i, n - i);
    a += select(w == 0.0f, F{}, w * (shift - load_n(x + i, n - i)));
  }
  return sum(a);
}

// y = e * scale - labels
RUNNEL_ISA_TARGET void row_minus(const float* e, const float* labels, float* y, int64_t n, float scale) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, load(e + i) * scale - load(labels + i));
  if (i < n) store_n(y + i, load_n(e + i, n - i) * scale - load_n(labels + i, n - i), n - i);
}

inline constexpr RowKernels kRowKernels = {row_max, row_exp, row_affine, row_weighted, row_minus};
