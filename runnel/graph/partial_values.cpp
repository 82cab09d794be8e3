#include "runnel/graph/partial_values.h"

#include <algorithm>

#include "runnel/base/error.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/dispatch.h"

namespace runnel {
namespace {

constexpr int64_t kMostShapeElements = 256;  // what is larger is no shape, and is left to the graph

bool is_index(DType t) { return t == DType::int32 || t == DType::int64; }

Tensor index_tensor(DType dtype, const Shape& shape, const Dims& values) {
  Tensor t = Tensor::empty(dtype, shape);
  if (dtype == DType::int32) {
    std::copy(values.begin(), values.end(), t.mutable_data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), t.mutable_data<int64_t>());
  }
  return t;
}

// The inputs with something in the place of what is not known.
struct StandIns {
  std::vector<Tensor> tensors;
  std::vector<Dims> known;  // of each input: its elements, kUnknownDim where not known; empty: all are
};

bool stand_in(const OpDef& op, Inputs inputs, const void* attrs, int num_outputs, StandIns& out) {
  const InferContext c(op, inputs, attrs, num_outputs);
  bool any_unknown = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Tensor& t = *inputs[static_cast<size_t>(i)];
    if (const Tensor* value = t.known_value()) {
      if (!is_plain(value->dtype()) || !value->device().is_host()) return false;
      out.tensors.push_back(*value);
      out.known.emplace_back();
      continue;
    }
    // An op that moves elements does so by its other inputs: these must be known.
    const bool moved = op.input_spec(i, c.num_inputs()).type_var == op.outputs[0].type_var;
    const auto elements = c.partial_ints(i);
    if (!elements || !(op.elementwise || moved) || !c.input(i).is_static()) return false;
    Dims values = *elements;
    if (op.elementwise) std::replace(values.begin(), values.end(), kUnknownDim, int64_t{1});  // divides
    out.tensors.push_back(index_tensor(t.dtype(), Shape(c.input(i)), values));
    out.known.push_back(*elements);
    any_unknown = true;
  }
  return any_unknown;
}

// An element that an unknown one had part in is unknown too: operands are scalars and vectors that broadcast.
void forget_unknown(const std::vector<Dims>& operands, Dims& result) {
  for (const Dims& known : operands) {
    if (known.empty()) continue;
    for (size_t j = 0; j < result.size(); ++j) {
      if (known[known.size() == 1 ? 0 : j] == kUnknownDim) result[j] = kUnknownDim;
    }
  }
}

}  // namespace

void find_elements(const OpDef& op, Inputs inputs, const void* attrs, Node& node) {
  if (op.stateful || inputs.empty() || !(op.elementwise || op.moves)) return;
  for (size_t i = 0; i < node.dtypes.size(); ++i) {
    const PartialShape& s = node.shapes[i];
    if (!is_index(node.dtypes[i]) || !s.has_rank() || s.rank() > 1 || node.values[i].defined()) return;
    if (s.is_static() && Shape(s).num_elements() > kMostShapeElements) return;
  }
  StandIns in;
  if (!stand_in(op, inputs, attrs, node.num_outputs(), in)) return;
  std::vector<const Tensor*> arguments;
  for (const Tensor& t : in.tensors) arguments.push_back(&t);
  std::vector<Tensor> out(node.dtypes.size());
  try {
    const OutsideTrace outside;
    dispatch(op, arguments, attrs, out.data(), node.num_outputs(), node.where);
  } catch (const Error&) {  // what fails here fails when the graph runs, if it gets there
    return;
  }
  node.elements.resize(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    Dims result = int_values(out[i]);
    if (op.elementwise) forget_unknown(in.known, result);
    node.shapes[i] = out[i].shape();
    const auto unknown = std::count(result.begin(), result.end(), kUnknownDim);
    if (unknown == 0) {
      node.values[i] = out[i];
    } else if (unknown < static_cast<ptrdiff_t>(result.size())) {
      node.elements[i] = std::move(result);
    }
  }
}

}  // namespace runnel
