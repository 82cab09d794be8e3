#include "runnel/graph/executor/block_chain.h"

#include <algorithm>

#include "runnel/base/parallel.h"
#include "runnel/base/small_vector.h"

namespace runnel {
namespace {

constexpr int64_t kBlock = 2048;            // elements: a few blocks of floats fit the first-level cache
constexpr int64_t kTask = 32 * kBlock;      // elements of one task
constexpr int64_t kSmallest = 16 * kBlock;  // tensors below this are in the cache anyway
constexpr size_t kMostInputs = 4;
constexpr size_t kMostCompiled = 64;  // steps of one loop: to find that so many are too many takes a while

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
                       const std::vector<bool>& is_inner, bool compiled)
    : shape_(shape), size_(shape.num_elements()), steps_(std::move(steps)) {
  find_values(nodes, is_inner);
  find_stages(compiled);
  find_places();
  block_ = stages_.size() == 1 && stages_[0].loop ? kTask : kBlock;
}

void BlockChain::find_values(const std::vector<const Node*>& nodes, const std::vector<bool>& is_inner) {
  auto value_of = [&](uint32_t slot) {
    const auto it = std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.slot == slot; });
    return static_cast<size_t>(it - values_.begin());
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::vector<uint32_t> operands;
    for (size_t k = 0; k < steps_[i].inputs.size(); ++k) {
      const size_t v = value_of(steps_[i].inputs[k]);
      if (v == values_.size()) {
        const NodeOutput& in = nodes[i]->inputs[k];
        const bool scalar = in.node->shape(in.index).rank() == 0;
        values_.push_back({steps_[i].inputs[k], in.node->dtype(in.index), scalar ? Value::scalar : Value::whole});
        last_use_.push_back(i);
      }
      last_use_[v] = i;
      operands.push_back(static_cast<uint32_t>(v));
    }
    operands.push_back(static_cast<uint32_t>(values_.size()));
    values_.push_back({steps_[i].output, nodes[i]->dtype(), is_inner[i] ? Value::inner : Value::made});
    last_use_.push_back(i);
    operands_.push_back(std::move(operands));
  }
}

void BlockChain::find_stages(bool compiled) {
  const bool compiles = compiled && cpu::LaneLoop::available();
  const auto fits = [&](size_t i) {
    return compiles && steps_[i].op->lane && std::all_of(operands_[i].begin(), operands_[i].end(), [&](uint32_t v) {
             return values_[v].dtype == DType::float32;
           });
  };
  for (size_t first = 0; first < steps_.size(); first += stages_.back().count) {
    size_t count = 0;
    while (first + count < steps_.size() && count < kMostCompiled && fits(first + count)) ++count;
    Stage stage{first, 1, nullptr, {}, {}};
    for (; count > 1 && !stage.loop; count /= 2) stage = compile(first, count);
    if (!stage.loop) stage.count = 1;
    stages_.push_back(std::move(stage));
  }
}

// The steps as one loop; without it where they are too many for that.
BlockChain::Stage BlockChain::compile(size_t first, size_t count) const {
  Stage stage{first, count, nullptr, {}, {}};
  LaneCode code;
  std::vector<cpu::LaneLoop::Input> inputs;
  std::vector<int> results;
  std::vector<std::pair<uint32_t, Lane>> known;  // values of the stage so far
  const auto lane_of = [&](uint32_t v) {
    const auto it = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == v; });
    if (it != known.end()) return it->second;
    known.emplace_back(v, code.input(static_cast<int>(inputs.size())));
    inputs.push_back(values_[v].kind == Value::scalar ? cpu::LaneLoop::Input::scalar : cpu::LaneLoop::Input::array);
    stage.inputs.push_back(v);
    return known.back().second;
  };
  for (size_t i = first; i < first + count; ++i) {
    std::vector<Lane> lanes;
    for (size_t k = 0; k + 1 < operands_[i].size(); ++k) lanes.push_back(lane_of(operands_[i][k]));
    const size_t before = code.steps().size();
    const Lane out = steps_[i].op->lane(lanes.data(), steps_[i].attrs);
    // A step of its own, for that is when the value is stored.
    if (!out.code() || static_cast<size_t>(out.step_in(code)) < before) return stage;
    const uint32_t v = operands_[i].back();
    known.emplace_back(v, out);
    if (values_[v].kind == Value::inner && last_use_[v] < first + count) continue;  // never stored
    stage.results.push_back(v);
    results.push_back(out.step_in(code));
  }
  stage.loop = cpu::LaneLoop::compile(code, inputs, results);
  return stage;
}

// Small buffers are taken again after the last use of what they held. A kernel may write where it reads, and so may a
// loop where none of its later steps reads.
void BlockChain::find_places() {
  const auto is_stored = [&](uint32_t v, const Stage& stage) {
    return !stage.loop || std::find(stage.results.begin(), stage.results.end(), v) != stage.results.end();
  };
  std::vector<int> spare;
  for (const Stage& stage : stages_) {
    for (size_t i = stage.first; i < stage.first + stage.count; ++i) {
      const std::vector<uint32_t>& operands = operands_[i];
      for (size_t k = 0; k + 1 < operands.size(); ++k) {
        const Value& v = values_[operands[k]];
        const auto end = operands.begin() + static_cast<long>(k);
        const bool seen = std::find(operands.begin(), end, operands[k]) != end;
        if (v.kind == Value::inner && v.place >= 0 && last_use_[operands[k]] == i && !seen) spare.push_back(v.place);
      }
      Value& out = values_[operands.back()];
      if (out.kind != Value::inner || !is_stored(operands.back(), stage)) continue;
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
}

void BlockChain::run_stage(const Stage& stage, const std::vector<Tensor>& views, int64_t n) const {
  SmallVector<const float*, 8> inputs;
  SmallVector<float*, 4> results;
  for (const uint32_t v : stage.inputs) inputs.push_back(static_cast<const float*>(views[v].impl()->data));
  for (const uint32_t v : stage.results) results.push_back(static_cast<float*>(views[v].impl()->data));
  stage.loop->run(inputs.data(), results.data(), n);
}

void BlockChain::run_kernel(size_t step, std::vector<Tensor>& views) const {
  const Step& s = steps_[step];
  const std::vector<uint32_t>& operands = operands_[step];
  const Tensor* inputs[kMostInputs];
  const size_t count = operands.size() - 1;
  for (size_t k = 0; k < count; ++k) inputs[k] = &views[operands[k]];
  KernelContext context(*s.op, Inputs(inputs, count), s.attrs, &views[operands.back()], s.dtypes, 1, Device::cpu());
  s.kernel(context);
}

void BlockChain::run(Tensor* slots, const std::function<void(size_t)>& failed) const {
  parallel_for(size_, kTask, [&](int64_t begin, int64_t end) {
    std::vector<Tensor> buffers;
    for (const DType dtype : places_) buffers.push_back(Tensor::empty(dtype, Shape{block_}));
    std::vector<Tensor> views(values_.size());
    for (int64_t at = begin; at < end; at += block_) {
      const int64_t n = std::min(block_, end - at);
      for (size_t i = 0; i < values_.size(); ++i) {
        const Value& v = values_[i];
        const bool moves = v.kind == Value::whole || v.kind == Value::made;
        if (v.kind == Value::inner && v.place < 0) continue;
        if (at > begin && n == block_) {  // the views are right but for where they start
          if (moves) views[i].impl()->data = first_element(slots[v.slot], at);
        } else if (v.kind == Value::scalar) {
          views[i] = slots[v.slot];
        } else {
          views[i] = moves ? view_of(slots[v.slot], at, n) : view_of(buffers[static_cast<size_t>(v.place)], 0, n);
        }
      }
      for (const Stage& stage : stages_) {
        if (stage.loop) {
          run_stage(stage, views, n);
          continue;
        }
        try {
          run_kernel(stage.first, views);
        } catch (...) {
          failed(stage.first);
          throw;
        }
      }
    }
  });
}

}  // namespace runnel
