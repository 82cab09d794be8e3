// How rough an image is, and how much two differ.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/image_extent.h"
#include "runnel/ops/nn.h"

namespace runnel::image {
namespace {

struct Pair {
  Tensor a, b;  // float32
  Tensor max_val;
};

// Both as floats, and the largest value on that scale.
Pair as_floats(const Operand& a, const Operand& b, const Operand& max_val, const char* what) {
  const Tensor x = a.value(), y = b.value();
  const PartialShape sx = x.partial_shape(), sy = y.partial_shape();
  if (x.dtype() != y.dtype()) {
    throw invalid_argument("[{}] images of {} and {}", what, dtype_name(x.dtype()), dtype_name(y.dtype()));
  }
  if ((sx.has_rank() && sx.rank() < 3) || !sx.compatible_with(sy)) {
    throw invalid_argument("[{}] two images or batches of one shape are needed, got {} and {}", what, sx.str(),
                           sy.str());
  }
  const bool literal = max_val.is_literal() && is_float(x.dtype());  // 255.0 may be said of whole numbers too
  const Tensor top = literal ? max_val.as(x.dtype()) : cast(max_val, x.dtype());
  return {convert_image_dtype(x, DType::float32), convert_image_dtype(y, DType::float32),
          convert_image_dtype(top, DType::float32)};
}

// [size, size, channels, 1]: a normal distribution that sums to one.
Tensor gaussian(int64_t size, double sigma, int64_t channels) {
  std::vector<double> line;
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(size - 1) / 2;
    line.push_back(std::exp(-x * x / (2 * sigma * sigma)));
    sum += line.back();
  }
  std::vector<float> weights;
  for (double y : line) {
    for (double x : line) {
      weights.insert(weights.end(), static_cast<size_t>(channels), static_cast<float>(y * x / (sum * sum)));
    }
  }
  return Tensor::of<float>(weights, Shape{size, size, channels, 1});
}

struct Similarity {
  Tensor whole, structure;  // [batch, channels]
};

Similarity similarity(const Tensor& x, const Tensor& y, const Tensor& max_val, const SsimOptions& o, const char* what) {
  const PartialShape s = x.partial_shape();
  const int64_t channels = s[3];
  if (channels < 0) throw invalid_argument("[{}] the number of channels must be known, got {}", what, s.str());
  if ((s[1] >= 0 && s[1] < o.filter_size) || (s[2] >= 0 && s[2] < o.filter_size)) {
    throw invalid_argument("[{}] images of {} are smaller than the filter of {}", what, s.str(), o.filter_size);
  }
  const Tensor kernel = gaussian(o.filter_size, o.filter_sigma, channels);
  const auto blur = [&](const Tensor& t) { return nn::depthwise_conv2d(t, kernel); };
  const Tensor c1 = square(max_val * o.k1), c2 = square(max_val * o.k2);
  const Tensor mx = blur(x), my = blur(y);
  const Tensor both = mx * my * 2, each = square(mx) + square(my);
  const Tensor luminance = (both + c1) / (each + c1);
  const Tensor structure = (blur(x * y) * 2 - both + c2) / (blur(square(x) + square(y)) - each + c2);
  return {reduce_mean(luminance * structure, {1, 2}), reduce_mean(structure, {1, 2})};
}

// [..., height, width, channels] as [n, height, width, channels].
Tensor as_batch(const Tensor& x, const char* what) {
  const PartialShape s = x.partial_shape();
  if (!s.has_rank()) throw invalid_argument("[{}] the rank of the images must be known", what);
  if (s.rank() == 4) return x;
  if (s.rank() == 3) return expand_dims(x, 0);
  const Tensor dims = shape(x);
  return reshape(x, concat({constant({-1}), slice(dims, {s.rank() - 3}, {3})}, 0));
}

// [n] in the shape that the batch had.
Tensor as_given(const Tensor& y, const Tensor& x) {
  const int rank = x.partial_shape().rank();
  if (rank == 4) return y;
  return rank == 3 ? squeeze(y, 0) : reshape(y, slice(shape(x), {0}, {rank - 3}));
}

// Half the size; odd sides are continued by their last line.
Tensor halved(const Tensor& x) {
  const ImageBatch batch(x, "image::ssim_multiscale");
  const auto odd = [](const Extent& e) -> Extent {
    return e.known() ? Extent(e.value() % 2) : Extent(floormod(e.tensor(), 2));
  };
  const Tensor paddings =
      reshape(shape_of_extents({0, 0, 0, odd(batch.height()), 0, odd(batch.width()), 0, 0}).tensor(), {4, 2});
  return nn::avg_pool2d(pad(x, paddings, "SYMMETRIC"), {.ksize = {2}, .strides = {2}});
}

}  // namespace

Tensor total_variation(const Operand& images) {
  return composed(images.where(), [&]() -> Tensor {
    const ImageBatch batch(images, "image::total_variation");
    const Tensor& x = batch.images();
    const Extent h = batch.height(), w = batch.width();
    const auto part = [&](const Extent& top, const Extent& left, const Extent& height, const Extent& width) {
      return slice(x, shape_of_extents({0, top, left, 0}), shape_of_extents({-1, height, width, -1}));
    };
    const Tensor down = part(1, 0, h - 1, w) - part(0, 0, h - 1, w);
    const Tensor right = part(0, 1, h, w - 1) - part(0, 0, h, w - 1);
    return batch.unbatched(reduce_sum(abs(down), {1, 2, 3}) + reduce_sum(abs(right), {1, 2, 3}));
  });
}

Tensor psnr(const Operand& a, const Operand& b, const Operand& max_val) {
  return composed(a.where(), [&]() -> Tensor {
    const Pair p = as_floats(a, b, max_val, "image::psnr");
    const Tensor error = reduce_mean(squared_difference(p.a, p.b), {-3, -2, -1});
    return log(p.max_val) * (20 / std::log(10.0)) - log(error) * (10 / std::log(10.0));
  });
}

Tensor ssim(const Operand& img1, const Operand& img2, const Operand& max_val, const SsimOptions& options) {
  return composed(img1.where(), [&]() -> Tensor {
    const char* what = "image::ssim";
    const Pair p = as_floats(img1, img2, max_val, what);
    const Similarity s = similarity(as_batch(p.a, what), as_batch(p.b, what), p.max_val, options, what);
    return as_given(reduce_mean(s.whole, -1), p.a);
  });
}

Tensor ssim_multiscale(const Operand& img1, const Operand& img2, const Operand& max_val,
                       const std::vector<double>& power_factors, const SsimOptions& options) {
  return composed(img1.where(), [&]() -> Tensor {
    const char* what = "image::ssim_multiscale";
    if (power_factors.empty()) throw invalid_argument("[{}] power_factors are empty", what);
    const Pair p = as_floats(img1, img2, max_val, what);
    Tensor x = as_batch(p.a, what), y = as_batch(p.b, what);
    std::vector<Tensor> factors;
    for (size_t k = 0; k < power_factors.size(); ++k) {
      if (k > 0) x = halved(x), y = halved(y);
      const Similarity s = similarity(x, y, p.max_val, options, what);
      const bool last = k + 1 == power_factors.size();
      factors.push_back(pow(nn::relu(last ? s.whole : s.structure), power_factors[k]));
    }
    return as_given(reduce_mean(reduce_prod(stack(factors, -1), -1), -1), p.a);
  });
}

}  // namespace runnel::image
