// Fourier transforms.
#include "runnel/kernels/cpu/fft.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/signal.h"

namespace runnel {
namespace {

inline constexpr Types<float, double> real_signal;

struct ToComplexAttrs {
  DType Tcomplex = DType::complex64;
  static constexpr auto fields() {
    return field_list(field("Tcomplex", &ToComplexAttrs::Tcomplex, {.types = complexes.mask}));
  }
};
struct ToRealAttrs {
  DType Treal = DType::float32;
  static constexpr auto fields() {
    return field_list(field("Treal", &ToRealAttrs::Treal, {.types = real_signal.mask}));
  }
};

DType complex_dtype(DType real) { return real == DType::float64 ? DType::complex128 : DType::complex64; }
DType real_dtype(DType complex) { return complex == DType::complex128 ? DType::float64 : DType::float32; }

// The transform over dimensions [first, last) of a dense array.
template <class T>
void transform_axes(std::complex<T>* x, const Dims& dims, int first, int last, bool inverse) {
  int64_t inner = 1;
  for (int d = static_cast<int>(dims.size()) - 1; d >= first; --d) {
    const int64_t n = dims[static_cast<size_t>(d)];
    int64_t outer = 1;
    for (int k = 0; k < d; ++k) outer *= dims[static_cast<size_t>(k)];
    if (d < last) cpu::fourier_axis(x, outer, n, inner, inverse);
    inner *= n;
  }
}

template <class T, int k, bool inverse>
void complex_transform(KernelContext& c) {
  using C = std::complex<T>;
  const Dims& dims = c.out().shape().dims();
  C* y = c.out<C>();
  std::copy_n(c.in<C>(0), c.out().num_elements(), y);
  const int rank = c.out().rank();
  transform_axes(y, dims, rank - k, rank, inverse);
  if (!inverse) return;
  int64_t n = 1;
  for (int d = rank - k; d < rank; ++d) n *= dims[static_cast<size_t>(d)];
  for (int64_t i = 0; i < c.out().num_elements(); ++i) y[i] /= static_cast<T>(n);
}

// x with its last k dimensions cut to `wanted`, dense.
template <class E>
std::vector<E> cut(const Tensor& x, const Dims& wanted) {
  const Dims strides = cpu::dense_strides(x.shape().dims());
  int64_t n = 1;
  for (int64_t d : wanted) n *= d;
  std::vector<E> out(static_cast<size_t>(n));
  cpu::copy_strided(x.dtype(), wanted, x.raw(), strides, out.data(), cpu::dense_strides(wanted));
  return out;
}

void check_lengths(const Shape& x, const Dims& lengths, bool halved) {
  const int k = static_cast<int>(lengths.size());
  const bool nothing = std::find(lengths.begin(), lengths.end() - 1, 0) != lengths.end() - 1;  // of other dimensions
  for (int i = 0; i < k; ++i) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    const int64_t needed = halved && i + 1 == k ? length / 2 + 1 : length;
    const int d = x.rank() - k + i;
    if (length == 0 && i + 1 == k && x.num_elements() > 0 && !nothing) throw invalid_argument("fft_length[{}] is 0", i);
    if (x[d] < needed && x[d] > 0) {
      throw invalid_argument("dimension {} of the input has size {}, fft_length asks for {}", d, x[d], needed);
    }
  }
}

template <class T, int k>
void to_complex(KernelContext& c) {
  const Dims lengths = c.ints(1);
  const Shape& s = c.in(0).shape();
  check_lengths(s, lengths, false);
  if (c.out().num_elements() == 0) return;
  if (s.num_elements() == 0) {
    std::fill_n(c.out<std::complex<T>>(), c.out().num_elements(), std::complex<T>());
    return;
  }
  Dims dims = s.dims();
  std::copy(lengths.begin(), lengths.end(), dims.end() - k);
  const std::vector<T> x = cut<T>(c.in(0), dims);
  const int64_t n = lengths.back();
  cpu::real_to_complex(x.data(), static_cast<int64_t>(x.size()) / n, n, n, c.out<std::complex<T>>());
  const int rank = s.rank();
  transform_axes(c.out<std::complex<T>>(), c.out().shape().dims(), rank - k, rank - 1, false);
}

template <class T, int k>
void to_real(KernelContext& c) {
  const Dims lengths = c.ints(1);
  const Shape& s = c.in(0).shape();
  check_lengths(s, lengths, true);
  const int64_t total = c.out().num_elements();
  if (total == 0) return;
  T* y = c.out<T>();
  if (s.num_elements() == 0) {
    std::fill_n(y, total, T(0));
    return;
  }
  Dims dims = s.dims();
  std::copy(lengths.begin(), lengths.end(), dims.end() - k);
  const int64_t n = lengths.back();
  dims.back() = n / 2 + 1;
  std::vector<std::complex<T>> x = cut<std::complex<T>>(c.in(0), dims);
  const int rank = s.rank();
  transform_axes(x.data(), dims, rank - k, rank - 1, true);
  cpu::complex_to_real(x.data(), static_cast<int64_t>(x.size()) / dims.back(), n, y);
  int64_t count = 1;
  for (int64_t length : lengths) count *= length;
  for (int64_t i = 0; i < total; ++i) y[i] /= static_cast<T>(count);
}

// The shape of a real transform: the last k dimensions are fft_length, the last one of them halved on the complex side.
void real_transform_shape(InferContext& c, int k, bool halved) {
  c.require_rank_at_least(0, k);
  c.require_rank(1, 1);
  const PartialShape& count = c.input(1);
  if (count.has_rank() && count[0] >= 0 && count[0] != k) {
    throw invalid_argument("fft_length must have {} sizes, got {}", k, count[0]);
  }
  const auto lengths = c.constant_ints(1);
  if (!c.input(0).has_rank()) return c.output(PartialShape::unknown());
  Dims dims = c.input(0).dims();
  for (int i = 0; i < k; ++i) {
    int64_t& size = dims[dims.size() - static_cast<size_t>(k - i)];
    size = lengths ? (*lengths)[static_cast<size_t>(i)] : kUnknownDim;
    if (lengths && size < 0) throw invalid_argument("fft_length must not be negative, got {}", size);
  }
  if (halved && lengths) dims.back() = dims.back() > 0 ? dims.back() / 2 + 1 : 0;
  c.output(PartialShape(dims));
}

template <int k, bool inverse>
Tensor complex_fft(const Tensor& x) {
  static const Op op(k == 1   ? (inverse ? "IFFT" : "FFT")
                     : k == 2 ? (inverse ? "IFFT2D" : "FFT2D")
                              : (inverse ? "IFFT3D" : "FFT3D"));
  return op({x});
}

// The number of elements of the last k dimensions, in the dtype of x.
template <int k>
Tensor element_count(const Tensor& x, DType dtype) {
  return cast(reduce_prod(shape(x)(slice(-k, none))), dtype);
}

// The last k dimensions of x cut or padded with zeros to those of `like`.
template <int k>
Tensor resized(const Tensor& x, const Tensor& like) {
  const Tensor have = shape(x), want = concat({have(slice(none, -k)), shape(like)(slice(-k, none))}, 0);
  const Tensor kept = slice(x, zeros_like(have), minimum(have, want));
  return pad(kept, stack({zeros_like(have), maximum(want - have, 0)}, 1));
}

template <int k, bool inverse>
void define_complex(Registry& r, const char* name, const char* doc) {
  using C = std::complex<double>;
  auto op = r.define(name).type("Tcomplex", complexes, DType::complex64);
  op.in("input", "Tcomplex").out("output", "Tcomplex").shape([](InferContext& c) {
    c.require_rank_at_least(0, k);
    c.output(c.input(0));
  });
  op.cpu([]<class Z>(KernelContext& c) { complex_transform<typename Z::value_type, k, inverse>(c); })
      .grad([](const GradCtx& g) {
        const Tensor n = element_count<k>(g.dy(), g.dy().dtype());
        return inverse ? complex_fft<k, false>(g.dy()) / n : complex_fft<k, true>(g.dy()) * n;
      })
      .doc(doc);
  Dims ones(k, 1);
  ones.back() = 2;
  const Tensor pair = Tensor::of<C>({{1, 2}, {3, -4}}, Shape(ones));
  const Tensor both =
      inverse ? Tensor::of<C>({{2, -1}, {-1, 3}}, Shape(ones)) : Tensor::of<C>({{4, -2}, {-2, 6}}, Shape(ones));
  op.sample({.in = {pair}, .out = {both}});
  Dims cube(k, 2);
  cube.back() = 3;
  std::vector<C> values;
  for (int64_t i = 0; i < Shape(cube).num_elements(); ++i)
    values.emplace_back(static_cast<double>(i % 4), static_cast<double>(i % 3) - 1);
  op.sample({.in = {Tensor::of<C>(values, Shape(cube))}});
  if (k > 1) op.sample({.in = {Tensor::of<C>({{1, 2}, {3, -4}})}, .error = "rank"});
}

template <int k>
void define_to_complex(Registry& r, const char* name, const char* doc) {
  auto op = r.define<ToComplexAttrs>(name).type("Treal", real_signal, DType::float32);
  op.in("input", "Treal")
      .in_host("fft_length", DType::int32)
      .out("output", "Tcomplex")
      .shape([](InferContext& c, const ToComplexAttrs& a) {
        if (a.Tcomplex != complex_dtype(c.dtype(0))) {
          throw invalid_argument("the transform of {} is not {}", dtype_name(c.dtype(0)), dtype_name(a.Tcomplex));
        }
        real_transform_shape(c, k, true);
      })
      .cpu([]<class T>(KernelContext& c) { to_complex<T, k>(c); })
      .grad([](const GradCtx& g) {
        // The halves that are left out have no gradient: zeros in their place.
        const Tensor dy = g.dy();
        const Tensor sizes = concat({shape(g.x())(slice(none, -k)), g.x(1)}, 0);
        const Tensor have = shape(dy);
        const Tensor whole = pad(dy, stack({zeros_like(have), sizes - have}, 1));
        const Tensor n = cast(reduce_prod(g.x(1)), dy.dtype());
        return Gradients{resized<k>(real(complex_fft<k, true>(whole) * n), g.x()), {}};
      })
      .doc(doc);
  Dims dims(k, 1);
  dims.back() = 3;
  std::vector<int32_t> length(k, 1);
  length.back() = 3;
  using C = std::complex<double>;
  Dims half(k, 1);
  half.back() = 2;
  op.sample({.in = {Tensor::of<double>({1, 2, 4}, Shape(dims)), Tensor::of<int32_t>(length)},
             .out = {Tensor::of<C>({{7, 0}, {-2, 1.7320508075688772}}, Shape(half))}},
            {.Tcomplex = DType::complex128});
  Dims cube(k, 2);
  cube.back() = 4;
  std::vector<double> values;
  for (int64_t i = 0; i < Shape(cube).num_elements(); ++i)
    values.push_back(static_cast<double>(i % 5) - 0.5 * static_cast<double>(i % 3));
  std::vector<int32_t> same(cube.begin(), cube.end());
  op.sample({.in = {Tensor::of<double>(values, Shape(cube)), Tensor::of<int32_t>(same)}},
            {.Tcomplex = DType::complex128});
  same.back() = 3;
  op.sample({.in = {Tensor::of<double>(values, Shape(cube)), Tensor::of<int32_t>(same)}},
            {.Tcomplex = DType::complex128});
  same.back() = 6;
  op.sample(
      {.in = {Tensor::of<double>(values, Shape(cube)), Tensor::of<int32_t>(same)}, .error = "fft_length asks for 6"},
      {.Tcomplex = DType::complex128});
}

template <int k>
void define_to_real(Registry& r, const char* name, const char* doc) {
  auto op = r.define<ToRealAttrs>(name).type("Tcomplex", complexes, DType::complex64);
  op.in("input", "Tcomplex")
      .in_host("fft_length", DType::int32)
      .out("output", "Treal")
      .shape([](InferContext& c, const ToRealAttrs& a) {
        if (a.Treal != real_dtype(c.dtype(0))) {
          throw invalid_argument("the transform of {} is not {}", dtype_name(c.dtype(0)), dtype_name(a.Treal));
        }
        real_transform_shape(c, k, false);
      })
      .cpu([]<class Z>(KernelContext& c) { to_real<typename Z::value_type, k>(c); })
      .doc(doc);
  op.grad([](const GradCtx& g) {
    static const Op<ToComplexAttrs> transform(k == 1 ? "RFFT" : k == 2 ? "RFFT2D" : "RFFT3D");
    const DType dtype = g.x().dtype();
    const Tensor spectrum = transform({g.dy(), g.x(1)}, {.Tcomplex = dtype});
    // What stands for itself and its mirror image counts twice.
    const Tensor n = g.x(1)[-1];
    const Tensor at = range(floordiv(n, 2) + 1);
    const Tensor once = logical_or(equal(at, 0), equal(at * 2, n));
    const Tensor weight = cast(where(once, 1, 2), DType::float64) / cast(reduce_prod(g.x(1)), DType::float64);
    return Gradients{resized<k>(spectrum * cast(weight, dtype), g.x()), {}};
  });
  using C = std::complex<double>;
  Dims half(k, 1);
  half.back() = 2;
  Dims dims(k, 1);
  dims.back() = 3;
  std::vector<int32_t> length(k, 1);
  length.back() = 3;
  op.sample({.in = {Tensor::of<C>({{7, 0}, {-2, 1.7320508075688772}}, Shape(half)), Tensor::of<int32_t>(length)},
             .out = {Tensor::of<double>({1, 2, 4}, Shape(dims))}},
            {.Treal = DType::float64});
  Dims cube(k, 2);
  cube.back() = 3;
  std::vector<C> values;
  for (int64_t i = 0; i < Shape(cube).num_elements(); ++i)
    values.emplace_back(static_cast<double>(i % 4), static_cast<double>(i % 3) - 1);
  std::vector<int32_t> longer(cube.begin(), cube.end());
  longer.back() = 4;
  op.sample({.in = {Tensor::of<C>(values, Shape(cube)), Tensor::of<int32_t>(longer)}}, {.Treal = DType::float64});
  longer.back() = 6;
  op.sample({.in = {Tensor::of<C>(values, Shape(cube)), Tensor::of<int32_t>(longer)}, .error = "fft_length asks for 4"},
            {.Treal = DType::float64});
}

// The lengths of transforms as their op takes them, 32 bits wide.
Tensor lengths_tensor(const char* name, const std::vector<int64_t>& lengths) {
  std::vector<int32_t> narrow;
  for (const int64_t n : lengths) {
    if (n > std::numeric_limits<int32_t>::max() || n < std::numeric_limits<int32_t>::min()) {
      throw invalid_argument("[{}] fft_length must be below 2^31, got {}", name, n);
    }
    narrow.push_back(static_cast<int32_t>(n));
  }
  return Tensor::of<int32_t>(narrow);
}

template <int k>
Tensor from_real(const char* name, const Operand& input, const std::vector<int64_t>& fft_length) {
  return composed(input.where(), [&]() -> Tensor {
    const Op<ToComplexAttrs> op(name);
    Tensor x = input.value();
    Tensor lengths;
    if (fft_length.empty()) {
      lengths = shape(x)(slice(-k, none));
    } else {
      lengths = lengths_tensor(name, fft_length);
      const Tensor have = shape(x);
      const Tensor missing = maximum(lengths - have(slice(-k, none)), 0);
      const Tensor after = concat({zeros_like(have(slice(none, -k))), missing}, 0);
      x = pad(x, stack({zeros_like(have), after}, 1));
    }
    return op({x, lengths}, {.Tcomplex = complex_dtype(x.dtype())});
  });
}

template <int k>
Tensor from_complex(const char* name, const Operand& input, std::vector<int64_t> fft_length) {
  return composed(input.where(), [&]() -> Tensor {
    const Op<ToRealAttrs> op(name);
    Tensor x = input.value();
    const Tensor have = shape(x);
    Tensor lengths;
    if (fft_length.empty()) {
      const Tensor last = maximum(2 * (have(slice(-1, none)) - 1), 0);
      lengths = concat({have(slice(-k, -1)), last}, 0);
    } else {
      lengths = lengths_tensor(name, fft_length);
      if (fft_length.back() > 0) fft_length.back() = fft_length.back() / 2 + 1;
      const Tensor needed = lengths_tensor(name, fft_length);
      const Tensor missing = maximum(needed - have(slice(-k, none)), 0);
      x = pad(x, stack({zeros_like(have), concat({zeros_like(have(slice(none, -k))), missing}, 0)}, 1));
    }
    return op({x, lengths}, {.Treal = real_dtype(x.dtype())});
  });
}

}  // namespace

void register_fft(Registry& r) {
  define_complex<1, false>(r, "FFT", "The Fourier transform of the last dimension.");
  define_complex<1, true>(r, "IFFT", "The inverse Fourier transform of the last dimension.");
  define_complex<2, false>(r, "FFT2D", "The Fourier transform of the last two dimensions.");
  define_complex<2, true>(r, "IFFT2D", "The inverse Fourier transform of the last two dimensions.");
  define_complex<3, false>(r, "FFT3D", "The Fourier transform of the last three dimensions.");
  define_complex<3, true>(r, "IFFT3D", "The inverse Fourier transform of the last three dimensions.");
  define_to_complex<1>(r, "RFFT", "The Fourier transform of real numbers: the half that the other mirrors.");
  define_to_complex<2>(r, "RFFT2D", "The Fourier transform of real matrices: half of the last dimension.");
  define_to_complex<3>(r, "RFFT3D", "The Fourier transform of three real dimensions: half of the last one.");
  define_to_real<1>(r, "IRFFT", "The real numbers that a half of a Fourier transform stands for.");
  define_to_real<2>(r, "IRFFT2D", "The real matrices that halves of Fourier transforms stand for.");
  define_to_real<3>(r, "IRFFT3D", "Three real dimensions that half of their Fourier transform stands for.");
}

namespace signal {

#define RUNNEL_FFT_FUNCTION(function, Name) \
  Tensor function(const Operand& input) {   \
    static const Op op(Name);               \
    return op({input});                     \
  }
RUNNEL_FFT_FUNCTION(fft, "FFT")
RUNNEL_FFT_FUNCTION(ifft, "IFFT")
RUNNEL_FFT_FUNCTION(fft2d, "FFT2D")
RUNNEL_FFT_FUNCTION(ifft2d, "IFFT2D")
RUNNEL_FFT_FUNCTION(fft3d, "FFT3D")
RUNNEL_FFT_FUNCTION(ifft3d, "IFFT3D")
#undef RUNNEL_FFT_FUNCTION

Tensor rfft(const Operand& x, const std::vector<int64_t>& n) { return from_real<1>("RFFT", x, n); }
Tensor rfft2d(const Operand& x, const std::vector<int64_t>& n) { return from_real<2>("RFFT2D", x, n); }
Tensor rfft3d(const Operand& x, const std::vector<int64_t>& n) { return from_real<3>("RFFT3D", x, n); }
Tensor irfft(const Operand& x, const std::vector<int64_t>& n) { return from_complex<1>("IRFFT", x, n); }
Tensor irfft2d(const Operand& x, const std::vector<int64_t>& n) { return from_complex<2>("IRFFT2D", x, n); }
Tensor irfft3d(const Operand& x, const std::vector<int64_t>& n) { return from_complex<3>("IRFFT3D", x, n); }

}  // namespace signal
}  // namespace runnel
