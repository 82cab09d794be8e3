#include "runnel/graph/executor/block_chain.h"

#include <algorithm>

#include "runnel/base/parallel.h"

namespace runnel {
namespace {

constexpr int64_t kBlock = 4096;           // elements: a few blocks of floats fit the first-level cache
constexpr int64_t kTask = 16 * kBlock;     // elements of one task
constexpr int64_t kSmallest = 8 * kBlock;  // tensors below this are in the cache anyway
constexpr size_t kMostInputs = 4;

int64_t static_size(const PartialShape& s) { return s.is_static() ? Shape(s).num_elements() : -1; }

void* first_element(const Tensor& t, int64_t index) {
  return static_cast<char*>(t.impl()->data) + static_cast<size_t>(index) * dtype_size(t.dtype());
}

// A tensor that shows `n` elements of another from `begin` on.
Tensor view_of(const Tensor& t, int64_t begin, int64_t n) {
  const auto offset = static_cast<char*>(first_element(t, begin)) - static_cast<char*>(t.impl()->buffer->data());
  return Tensor(make_ref<TensorImpl>(t.dtype(), Shape{n}, t.impl()->buffer, static_cast<size_t>(offset)));
}

}  // namespace

bool BlockChain::fits(const Node& node) {
  if (!node.op->elementwise || node.op->stateful || !node.inferred || hands_on(node)) return false;
  if (node.inputs.size() > kMostInputs) return false;
  if (node.num_outputs() != 1 || !is_plain(node.dtype()) || static_size(node.shape()) < kSmallest) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const NodeOutput& in = node.inputs[i];
    const PartialShape& shape = in.node->shape(in.index);
    if (node.op->input_spec(static_cast<int>(i), static_cast<int>(node.inputs.size())).host_memory) return false;
    if (!is_plain(in.node->dtype(in.index)) || !shape.is_static()) return false;
    if (!(shape == node.shape()) && shape.rank() != 0) return false;
  }
  return true;
}

BlockChain::BlockChain(const Shape& shape, std::vector<Step> steps, const std::vector<const Node*>& nodes,
                       const std::vector<bool>& is_inner)
    : shape_(shape), size_(shape.num_elements()), steps_(std::move(steps)) {
  auto value_of = [&](uint32_t slot) {
    const auto it = std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.slot == slot; });
    return static_cast<size_t>(it - values_.begin());
  };
  std::vector<size_t> last_use;
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::vector<uint32_t> operands;
    for (size_t k = 0; k < steps_[i].inputs.size(); ++k) {
      const size_t v = value_of(steps_[i].inputs[k]);
      if (v == values_.size()) {
        const NodeOutput& in = nodes[i]->inputs[k];
        const bool scalar = in.node->shape(in.index).rank() == 0;
        values_.push_back({steps_[i].inputs[k], in.node->dtype(in.index), scalar ? Value::scalar : Value::whole});
        last_use.push_back(i);
      }
      last_use[v] = i;
      operands.push_back(static_cast<uint32_t>(v));
    }
    operands.push_back(static_cast<uint32_t>(values_.size()));
    values_.push_back({steps_[i].output, nodes[i]->dtype(), is_inner[i] ? Value::inner : Value::made});
    last_use.push_back(i);
    operands_.push_back(std::move(operands));
  }
  // Small buffers are taken again after the last use of what they held. A kernel may write where it reads.
  std::vector<int> spare;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const std::vector<uint32_t>& operands = operands_[i];
    for (size_t k = 0; k + 1 < operands.size(); ++k) {
      const Value& v = values_[operands[k]];
      const bool seen = std::find(operands.begin(), operands.begin() + static_cast<long>(k), operands[k]) !=
                        operands.begin() + static_cast<long>(k);
      if (v.kind == Value::inner && last_use[operands[k]] == i && !seen) spare.push_back(v.place);
    }
    Value& out = values_[operands.back()];
    if (out.kind != Value::inner) continue;
    const auto it =
        std::find_if(spare.begin(), spare.end(), [&](int p) { return places_[static_cast<size_t>(p)] == out.dtype; });
    if (it != spare.end()) {
      out.place = *it;
      spare.erase(it);
    } else {
      out.place = static_cast<int>(places_.size());
      places_.push_back(out.dtype);
    }
  }
}

void BlockChain::run(Tensor* slots, const std::function<void(size_t)>& failed) const {
  parallel_for(size_, kTask, [&](int64_t begin, int64_t end) {
    std::vector<Tensor> buffers;
    for (const DType dtype : places_) buffers.push_back(Tensor::empty(dtype, Shape{kBlock}));
    std::vector<Tensor> views(values_.size());
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      for (size_t i = 0; i < values_.size(); ++i) {
        const Value& v = values_[i];
        const bool moves = v.kind == Value::whole || v.kind == Value::made;
        if (at > begin && n == kBlock) {  // the views are right but for where they start
          if (moves) views[i].impl()->data = first_element(slots[v.slot], at);
        } else if (v.kind == Value::scalar) {
          views[i] = slots[v.slot];
        } else {
          views[i] = moves ? view_of(slots[v.slot], at, n) : view_of(buffers[static_cast<size_t>(v.place)], 0, n);
        }
      }
      for (size_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        const std::vector<uint32_t>& operands = operands_[i];
        const Tensor* inputs[kMostInputs];
        const size_t count = operands.size() - 1;
        for (size_t k = 0; k < count; ++k) inputs[k] = &views[operands[k]];
        KernelContext context(*step.op, Inputs(inputs, count), step.attrs, &views[operands.back()], step.dtypes, 1,
                              Device::cpu());
        try {
          step.kernel(context);
        } catch (...) {
          failed(i);
          throw;
        }
      }
    }
  });
}

}  // namespace runnel
