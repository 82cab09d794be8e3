// Counting: bincount, histograms, confusion matrices.
#include "runnel/ops/histogram.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

inline constexpr Types<int32_t, int64_t, float, double> count_types;

struct DenseBincountAttrs {
  bool binary_output = false;
  static constexpr auto fields() { return field_list(field("binary_output", &DenseBincountAttrs::binary_output)); }
};

struct HistogramAttrs {
  DType dtype = DType::int32;
  static constexpr auto fields() {
    return field_list(field("dtype", &HistogramAttrs::dtype, {.types = index_types.mask}));
  }
};

void check_bins(InferContext& c, int size_input, int weights_input) {
  c.require_rank(size_input, 0);
  const auto size = c.constant_ints(size_input);
  if (size && (*size)[0] < 0) throw invalid_argument("the number of bins is negative: {}", (*size)[0]);
  const PartialShape& arr = c.input(0);
  const PartialShape& weights = c.input(weights_input);
  if (!arr.is_static() || !weights.is_static()) return;
  if (Shape(weights).num_elements() > 0 && !(arr == weights)) {
    throw invalid_argument("weights {} must have the shape of the values {} or be empty", weights.str(), arr.str());
  }
}

template <class T, class I>
void count(const I* values, const T* weights, int64_t n, bool binary, int64_t bins, T* y) {
  std::fill(y, y + bins, T(0));
  for (int64_t i = 0; i < n; ++i) {
    if (values[i] < 0) throw invalid_argument("a value is negative: {} at position {}", values[i], i);
    if (values[i] >= bins) continue;
    if (binary) {
      y[values[i]] = T(1);
    } else {
      y[values[i]] += weights ? weights[i] : T(1);
    }
  }
}

template <class T, class I>
void count_rows(KernelContext& c, bool binary) {
  const Shape& s = c.in(0).shape();
  const int64_t rows = s.rank() == 2 ? s[0] : 1;
  const int64_t n = s.rank() == 2 ? s[1] : c.in(0).num_elements();
  const int64_t bins = c.int_scalar(1);
  const T* weights = c.in(2).num_elements() > 0 ? c.in<T>(2) : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    count(c.in<I>(0) + r * n, weights ? weights + r * n : nullptr, n, binary, bins, c.out<T>() + r * bins);
  }
}

template <class T, class Count>
void histogram(KernelContext& c) {
  const T* range = c.in<T>(1);
  const int64_t bins = c.int_scalar(2);
  if (!(range[0] < range[1])) {
    throw invalid_argument("value_range must go up, got [{}, {}]", range[0], range[1]);
  }
  const double step = static_cast<double>(range[1] - range[0]) / static_cast<double>(bins);
  Count* y = c.out<Count>();
  std::fill(y, y + bins, Count(0));
  const T* values = c.in<T>(0);
  for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
    if (values[i] != values[i]) throw invalid_argument("a value is NaN, at position {}", i);
    const double place = values[i] > range[0] ? static_cast<double>(values[i] - range[0]) / step : 0.0;
    ++y[static_cast<int64_t>(std::min(place, static_cast<double>(bins - 1)))];
  }
}

void histogram_shape(InferContext& c) {
  c.require_rank(1, 1);
  c.require_rank(2, 0);
  const PartialShape& range = c.input(1);
  if (range.is_static() && range[0] != 2) throw invalid_argument("value_range must be a pair, got {}", range.str());
  const auto bins = c.constant_ints(2);
  if (bins && (*bins)[0] <= 0) throw invalid_argument("nbins must be positive, got {}", (*bins)[0]);
  c.output(PartialShape{bins ? (*bins)[0] : kUnknownDim});
}

}  // namespace

void register_histogram(Registry& r) {
  const Tensor none = Tensor::empty(DType::float32, {0});
  r.define("Bincount")
      .type("T", count_types)
      .in("arr", DType::int32)
      .in_host("size", DType::int32)
      .in("weights", "T")
      .out("bins")
      .shape([](InferContext& c) {
        check_bins(c, 1, 2);
        const auto size = c.constant_ints(1);
        c.output(PartialShape{size ? (*size)[0] : kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) {
        const T* weights = c.in(2).num_elements() > 0 ? c.in<T>(2) : nullptr;
        count(c.in<int32_t>(0), weights, c.in(0).num_elements(), false, c.int_scalar(1), c.out<T>());
      })
      .not_differentiable()
      .doc("How often every value below `size` appears, or the sum of the weights where it does.")
      .sample({.in = {Tensor{1, 0, 1, 3}, Tensor(4), none}, .out = {Tensor{1.f, 2.f, 0.f, 1.f}}})
      .sample({.in = {Tensor{1, 0, 1, 9}, Tensor(3), Tensor{0.5f, 1.f, 2.f, 3.f}}, .out = {Tensor{1.f, 2.5f, 0.f}}})
      .sample({.in = {Tensor{1, -1}, Tensor(3), none}, .error = "negative: -1"})
      .sample({.in = {Tensor{1, 1}, Tensor(3), Tensor{1.f}}, .error = "weights"});

  r.define<DenseBincountAttrs>("DenseBincount")
      .type("T", count_types)
      .type("Tidx", index_types)
      .in("input", "Tidx")
      .in_host("size", "Tidx")
      .in("weights", "T")
      .out("output")
      .shape([](InferContext& c, const DenseBincountAttrs&) {
        check_bins(c, 1, 2);
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(PartialShape::unknown());
        if (x.rank() > 2) throw invalid_argument("input must have rank 2 or less, got {}", x.str());
        const auto size = c.constant_ints(1);
        Dims dims;
        if (x.rank() == 2) dims.push_back(x[0]);
        dims.push_back(size ? (*size)[0] : kUnknownDim);
        c.output(PartialShape(dims));
      })
      .cpu([]<class T>(KernelContext& c, const DenseBincountAttrs& a) {
        if (c.in(0).dtype() == DType::int32) {
          count_rows<T, int32_t>(c, a.binary_output);
        } else {
          count_rows<T, int64_t>(c, a.binary_output);
        }
      })
      .not_differentiable()
      .doc("How often every value below `size` appears, in every row of a matrix or in a vector.")
      .sample(
          {.in = {Tensor{{1, 0, 1}, {2, 2, 2}}, Tensor(3), none}, .out = {Tensor{{1.f, 2.f, 0.f}, {0.f, 0.f, 3.f}}}})
      .sample({.in = {Tensor{1, 0, 1, 3}, Tensor(3), none}, .out = {Tensor{1.f, 1.f, 0.f}}}, {.binary_output = true});

  r.define<HistogramAttrs>("HistogramFixedWidth")
      .in("values", count_types)
      .in("value_range")
      .in_host("nbins", DType::int32)
      .out("out", "dtype")
      .shape(histogram_shape)
      .cpu([]<class T>(KernelContext& c) {
        if (c.output_dtype(0) == DType::int32) {
          histogram<T, int32_t>(c);
        } else {
          histogram<T, int64_t>(c);
        }
      })
      .not_differentiable()
      .doc("How many values fall into each of nbins bins of equal width; the outer bins take what lies outside.")
      .sample({.in = {Tensor{-1.f, 0.f, 1.5f, 2.f, 5.f, 15.f}, Tensor{0.f, 5.f}, Tensor(5)},
               .out = {Tensor{2, 1, 1, 0, 2}}})
      .sample({.in = {Tensor{{1, 2}, {3, 4}}, Tensor{0, 8}, Tensor(2)}, .out = {Tensor{int64_t{3}, int64_t{1}}}},
              {.dtype = DType::int64})
      .sample({.in = {Tensor{1.f, NAN}, Tensor{0.f, 5.f}, Tensor(5)}, .error = "is NaN"})
      .sample({.in = {Tensor{1.f}, Tensor{5.f, 5.f}, Tensor(5)}, .error = "must go up"})
      .sample({.in = {Tensor{1.f}, Tensor{0.f, 5.f}, Tensor(0)}, .error = "nbins must be positive"});
}

namespace math {

Tensor bincount(const Operand& arr, const BincountOptions& o) {
  return composed(arr.where(), [&]() -> Tensor {
    static const Op plain("Bincount");
    static const Op<DenseBincountAttrs> dense("DenseBincount");
    if (o.axis && *o.axis != 0 && *o.axis != -1) {
      throw invalid_argument("[Bincount] axis must be 0, -1 or not given, got {}", *o.axis);
    }
    for (int64_t length : {o.minlength, o.maxlength}) {
      if (length < -1)
        throw invalid_argument("[Bincount] minlength and maxlength must not be negative, got {}", length);
    }
    const bool weighted = o.weights.defined();
    if (weighted && o.binary_output) throw invalid_argument("[Bincount] weights have no meaning with binary_output");
    const bool rows = o.axis == -1;
    Tensor values = arr.value();
    if (!is_integer(values.dtype())) {
      throw invalid_argument("[Bincount] arr must be integers, got {}", dtype_name(values.dtype()));
    }
    if (values.dtype() != DType::int64) values = cast(values, DType::int32);
    Tensor weights = weighted ? o.weights : Tensor::empty(o.dtype, {0});
    Tensor size = maximum(reduce_max(values) + 1, 0);  // of an empty arr the largest value is the lowest number
    if (o.minlength >= 0) size = maximum(size, o.minlength);
    if (o.maxlength >= 0) size = minimum(size, o.maxlength);
    if (!rows && !o.binary_output && values.dtype() == DType::int32) {
      return plain({values, size, weights});
    }
    if (!rows) {
      values = reshape(values, {-1});
      if (weighted) weights = reshape(weights, {-1});
    }
    return dense({values, size, weights}, {.binary_output = o.binary_output});
  });
}

Tensor confusion_matrix(const Operand& labels, const Operand& predictions, int64_t num_classes, const Tensor& weights,
                        DType dtype) {
  return composed(labels.where(), [&]() -> Tensor {
    const Tensor truth = cast(labels.value(), DType::int64);
    const Tensor guess = cast(predictions.value(), DType::int64);
    if (!truth.partial_shape().compatible_with(guess.partial_shape())) {
      throw invalid_argument("[ConfusionMatrix] labels {} and predictions {} differ in shape",
                             truth.partial_shape().str(), guess.partial_shape().str());
    }
    const Tensor largest = maximum(maximum(reduce_max(truth), reduce_max(guess)), -1);
    if (!largest.is_symbolic()) {
      const int64_t smallest = minimum(reduce_min(truth), reduce_min(guess)).item<int64_t>();
      if (smallest < 0) throw invalid_argument("[ConfusionMatrix] a class is negative: {}", smallest);
      if (num_classes >= 0 && largest.item<int64_t>() >= num_classes) {
        throw invalid_argument("[ConfusionMatrix] class {} is not below num_classes {}", largest.item<int64_t>(),
                               num_classes);
      }
    }
    const Tensor n = num_classes >= 0 ? constant(num_classes, DType::int64) : largest + 1;
    const Tensor amounts = weights.defined() ? cast(weights, dtype) : ones_like(truth, dtype);
    const Tensor flat = reshape(truth * n + guess, {-1});
    return reshape(unsorted_segment_sum(reshape(amounts, {-1}), flat, n * n), stack({n, n}));
  });
}

}  // namespace math

Tensor histogram_fixed_width(const Operand& values, const Operand& value_range, const Operand& nbins, DType dtype) {
  static const Op<HistogramAttrs> op("HistogramFixedWidth");
  return op({values, value_range, nbins}, {.dtype = dtype});
}

Tensor histogram_fixed_width_bins(const Operand& values, const Operand& value_range, const Operand& nbins,
                                  DType dtype) {
  return composed(values.where(), [&]() -> Tensor {
    const Tensor x = values.value();
    const Tensor range = value_range.is_literal() ? value_range.as(x.dtype()) : *value_range.tensor();
    const PartialShape pair = range.partial_shape();
    if (pair.is_static() && !(pair == PartialShape{2})) {
      throw invalid_argument("[HistogramFixedWidth] value_range must be a pair, got shape {}", pair.str());
    }
    const Tensor bins = nbins.value();
    if (!bins.is_symbolic() && int_values(bins)[0] <= 0) {
      throw invalid_argument("[HistogramFixedWidth] nbins must be positive, got {}", int_values(bins)[0]);
    }
    const Tensor low = range[0];
    const Tensor scaled = divide(x - low, range[1] - low);
    const Tensor count = cast(bins, scaled.dtype());
    return cast(minimum(maximum(count * scaled, 0), count - 1), dtype);
  });
}

}  // namespace runnel
