#include "runnel/keras/layers/reshaping.h"

#include <algorithm>
#include <numeric>

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace {

// The product of the dimensions after the batch; kUnknownDim unless all are known.
int64_t size_of_example(const PartialShape& shape) {
  int64_t size = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    if (shape[i] == kUnknownDim) return kUnknownDim;
    size *= shape[i];
  }
  return size;
}

// x as [batch, rest...]; one of `rest` may be -1.
Tensor reshape_examples(const Tensor& x, const std::vector<int64_t>& rest) {
  const int64_t batch = x.partial_shape()[0];
  const bool worked_out = std::ranges::find(rest, -1) != rest.end();
  if (batch != kUnknownDim || !worked_out) {  // at most one -1 in all
    std::vector<int64_t> sizes{batch};
    sizes.insert(sizes.end(), rest.begin(), rest.end());
    return reshape(x, sizes);
  }
  const auto rank = static_cast<int64_t>(rest.size());
  const Tensor sizes = concat({shape(x)(slice(0, 1)), int_vector(Dims(rest.begin(), rest.end()))}, 0);
  Dims known{kUnknownDim};
  for (int64_t i = 0; i < rank; ++i) known.push_back(rest[static_cast<size_t>(i)]);
  return ensure_shape(reshape(x, sizes), PartialShape(known));
}

}  // namespace

void Flatten::prepare() {
  if (options_.data_format != "channels_last" && options_.data_format != "channels_first") {
    throw invalid_argument("[Flatten] data_format is channels_last or channels_first, got '{}'", options_.data_format);
  }
  set_input_spec({.min_ndim = 1});
}

Tensor Flatten::call(const Tensor& input, const CallArgs&) {
  const PartialShape given = input.partial_shape();
  const int rank = given.rank();
  if (rank == 1) return expand_dims(input, 1);
  if (options_.data_format == "channels_first" && rank > 2) {
    std::vector<int64_t> order{0};
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1);
    return reshape_examples(transpose(input, order), {size_of_example(given)});
  }
  return reshape_examples(input, {size_of_example(given)});
}

void Reshape::prepare() {
  if (std::ranges::count(options_.target_shape, -1) > 1) {
    throw invalid_argument("[Reshape] only one size of target_shape may be -1, got [{}]",
                           comma_separated(options_.target_shape));
  }
  set_input_spec({.min_ndim = 1});
}

Tensor Reshape::call(const Tensor& input, const CallArgs&) {
  std::vector<int64_t> target = options_.target_shape;
  const int64_t size = size_of_example(input.partial_shape());
  if (size == kUnknownDim) return reshape_examples(input, target);

  const auto open = std::ranges::find(target, -1);
  int64_t rest = 1;
  for (const int64_t n : target) rest *= n == -1 ? 1 : n;
  const bool fits = open == target.end() ? rest == size : rest != 0 && size % rest == 0;
  if (!fits) {
    throw invalid_argument("[Reshape] {}: examples of input {} have {} elements, which target_shape [{}] cannot hold",
                           name(), input.partial_shape().str(), size, comma_separated(target));
  }
  if (open != target.end()) *open = size / rest;
  return reshape_examples(input, target);
}

void Permute::prepare() {
  std::vector<int64_t> sorted = options_.dims, expected(options_.dims.size());
  std::ranges::sort(sorted);
  std::iota(expected.begin(), expected.end(), 1);
  if (sorted != expected) {
    throw invalid_argument("[Permute] dims must be 1, 2, ... in some order, got [{}]", comma_separated(options_.dims));
  }
  set_input_spec({.ndim = static_cast<int>(options_.dims.size()) + 1});
}

Tensor Permute::call(const Tensor& input, const CallArgs&) {
  std::vector<int64_t> order{0};
  order.insert(order.end(), options_.dims.begin(), options_.dims.end());
  return transpose(input, order);
}

void RepeatVector::prepare() {
  if (options_.n <= 0) throw invalid_argument("[RepeatVector] n must be positive, got {}", options_.n);
  set_input_spec({.ndim = 2});
}

Tensor RepeatVector::call(const Tensor& input, const CallArgs&) {
  return tile(expand_dims(input, 1), {1, options_.n, 1});
}

}  // namespace runnel::keras
