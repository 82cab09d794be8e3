#include "runnel/keras/layers/merge.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/call_scope.h"
#include "runnel/ops/array.h"
#include "runnel/ops/einsum.h"
#include "runnel/ops/math.h"
#include "runnel/ops/norm.h"

namespace runnel::keras {
namespace {

std::string merged_shapes_text(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& t : tensors) text += (text.empty() ? "" : ", ") + t.partial_shape().str();
  return text;
}

// The tensors of a call; an Error for a single tensor, and unless there are `exactly` so many (0: any number).
std::vector<Tensor> inputs_to_merge(const Layer& layer, const Nest& inputs, size_t exactly = 0) {
  const std::vector<Tensor> tensors = nest::flatten(inputs);
  if (inputs.is_leaf() || tensors.empty() || (exactly > 0 && tensors.size() != exactly)) {
    throw invalid_argument("[{}] layer '{}' takes a list of {} tensors, got {}", layer.class_name(), layer.name(),
                           exactly > 0 ? std::to_string(exactly) : "one or more",
                           inputs.is_leaf() ? "a single tensor, no list" : std::to_string(tensors.size()));
  }
  return tensors;
}

PartialShape without_batch(const PartialShape& shape) {
  return shape.rank() <= 1 ? PartialShape() : PartialShape(std::span(shape.dims()).subspan(1));
}

bool can_broadcast(const std::vector<Tensor>& tensors) {
  try {
    PartialShape all;
    for (const Tensor& t : tensors) all = broadcast_shapes(all, without_batch(t.partial_shape()));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void check_batches(const Layer& layer, const std::vector<Tensor>& tensors) {
  int64_t batch = kUnknownDim;
  for (const Tensor& t : tensors) {
    const PartialShape shape = t.partial_shape();
    if (shape.rank() < 1 || shape[0] == kUnknownDim) continue;
    if (batch != kUnknownDim && shape[0] != batch) {
      throw invalid_argument("[{}] layer '{}' cannot merge different batch sizes: {}", layer.class_name(), layer.name(),
                             merged_shapes_text(tensors));
    }
    batch = shape[0];
  }
}

template <class F>
Tensor folded(const std::vector<Tensor>& tensors, F f) {
  Tensor out = tensors[0];
  for (size_t i = 1; i < tensors.size(); ++i) out = f(out, tensors[i]);
  return out;
}

}  // namespace

namespace merge_detail {

std::vector<Tensor> aligned(const Layer& layer, const Nest& inputs) {
  std::vector<Tensor> tensors = inputs_to_merge(layer, inputs);
  int rank = 0;
  for (const Tensor& t : tensors) {
    if (!t.partial_shape().has_rank()) return tensors;
    rank = std::max(rank, t.partial_shape().rank());
  }
  check_batches(layer, tensors);
  if (!can_broadcast(tensors)) {
    throw invalid_argument("[{}] layer '{}': the shapes of the inputs do not fit together: {}", layer.class_name(),
                           layer.name(), merged_shapes_text(tensors));
  }
  for (Tensor& t : tensors) {
    const int missing = rank - t.partial_shape().rank();
    for (int i = 0; i < missing; ++i) t = expand_dims(t, 1);
  }
  return tensors;
}

Tensor joint_mask(const Nest& inputs, const Tensor& mask) {
  Tensor joint;
  for (const Tensor& t : nest::flatten(inputs)) {
    const Tensor own = MaskScope::mask_of(t);
    if (own.defined()) joint = joint.defined() ? logical_and(joint, own) : own;
  }
  return joint.defined() ? joint : mask;
}

}  // namespace merge_detail

Tensor Add::merge(const std::vector<Tensor>& inputs) {
  return folded(inputs, [](const Tensor& a, const Tensor& b) { return a + b; });
}

Tensor Subtract::merge(const std::vector<Tensor>& inputs) {
  if (inputs.size() != 2) {
    throw invalid_argument("[Subtract] takes exactly 2 tensors, got {}: {}", inputs.size(), merged_shapes_text(inputs));
  }
  return inputs[0] - inputs[1];
}

Tensor Multiply::merge(const std::vector<Tensor>& inputs) {
  return folded(inputs, [](const Tensor& a, const Tensor& b) { return a * b; });
}

Tensor Average::merge(const std::vector<Tensor>& inputs) {
  return Add::merge(inputs) / static_cast<int>(inputs.size());
}

Tensor Maximum::merge(const std::vector<Tensor>& inputs) {
  return folded(inputs, [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
}

Tensor Minimum::merge(const std::vector<Tensor>& inputs) {
  return folded(inputs, [](const Tensor& a, const Tensor& b) { return minimum(a, b); });
}

void Concatenate::prepare() { set_supports_masking(true); }

Nest Concatenate::call(const Nest& inputs, const CallArgs&) {
  const std::vector<Tensor> tensors = inputs_to_merge(*this, inputs);
  const PartialShape first = tensors[0].partial_shape();
  if (!first.has_rank()) return concat(tensors, static_cast<int>(options_.axis));
  const int axis = normalize_axis(options_.axis, first.rank(), "axis of Concatenate");
  for (const Tensor& t : tensors) {
    const PartialShape shape = t.partial_shape();
    bool fits = !shape.has_rank() || shape.rank() == first.rank();
    for (int i = 0; fits && i < shape.rank(); ++i) {
      fits = i == axis || shape[i] == first[i] || shape[i] == kUnknownDim || first[i] == kUnknownDim;
    }
    if (!fits) {
      throw invalid_argument("[Concatenate] layer '{}' needs inputs whose shapes are equal but for axis {}, got {}",
                             name(), options_.axis, merged_shapes_text(tensors));
    }
  }
  return concat(tensors, axis);
}

Tensor Concatenate::compute_mask(const Nest& inputs, const Tensor&) {
  std::vector<Tensor> masks;
  bool any = false;
  for (const Tensor& t : nest::flatten(inputs)) {
    Tensor mask = ones_like(t, DType::bool_);
    if (const Tensor own = MaskScope::mask_of(t); own.defined()) {
      const bool shorter = own.partial_shape().rank() < t.partial_shape().rank();
      mask = logical_and(mask, shorter ? expand_dims(own, -1) : own);
      any = true;
    }
    masks.push_back(mask);
  }
  return any ? reduce_all(concat(masks, static_cast<int>(options_.axis)), -1) : Tensor();
}

void Dot::prepare() {
  if (options_.axes.size() != 1 && options_.axes.size() != 2) {
    throw invalid_argument("[Dot] axes are one number for both inputs or one for each, got [{}]",
                           comma_separated(options_.axes));
  }
}

Nest Dot::call(const Nest& inputs, const CallArgs&) {
  std::vector<Tensor> x = inputs_to_merge(*this, inputs, 2);
  check_batches(*this, x);
  int64_t sizes[2];
  std::string labels[2];
  // Labels of einsum: `a` is the batch, `b` the axis that is summed over, the others have one each.
  std::string result = "a";
  char next = 'c';
  for (size_t i = 0; i < 2; ++i) {
    const PartialShape shape = x[i].partial_shape();
    if (shape.rank() < 2) {
      throw invalid_argument("[Dot] layer '{}' needs inputs of at least two dimensions, got {}", name(),
                             merged_shapes_text(x));
    }
    const int axis = normalize_axis(options_.axes[std::min(i, options_.axes.size() - 1)], shape.rank(), "axes of Dot");
    if (axis == 0) throw invalid_argument("[Dot] layer '{}' cannot sum over axis 0, the batch", name());
    sizes[i] = shape[axis];
    labels[i] = "a";
    for (int d = 1; d < shape.rank(); ++d) {
      if (d != axis) result += next;
      labels[i] += d == axis ? 'b' : next++;
    }
    if (options_.normalize) x[i] = math::l2_normalize(x[i], axis);
  }
  if (sizes[0] != sizes[1] && sizes[0] != kUnknownDim && sizes[1] != kUnknownDim) {
    throw invalid_argument("[Dot] layer '{}': the axes to sum over have sizes {} and {}; the inputs are {}", name(),
                           sizes[0], sizes[1], merged_shapes_text(x));
  }
  const Tensor out = einsum(labels[0] + "," + labels[1] + "->" + result, x);
  return result.size() == 1 ? expand_dims(out, 1) : out;
}

Config Dot::get_config() const {
  Config config = MergeOf::get_config();
  if (options_.axes.size() == 1) config.set("axes", options_.axes[0]);
  return config;
}

}  // namespace runnel::keras
