// Which values of a plan stand in the arena, and where.
#include <algorithm>
#include <numeric>

#include "runnel/graph/executor/memory_plan.h"
#include "runnel/graph/executor/plan.h"

namespace runnel {
namespace {

// Slots that share memory: a value and the views of it that ops hand on, or that are written over it.
class Groups {
 public:
  explicit Groups(uint32_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0u); }
  uint32_t of(uint32_t slot) {
    while (parent_[slot] != slot) slot = parent_[slot] = parent_[parent_[slot]];
    return slot;
  }
  void join(uint32_t a, uint32_t b) { parent_[of(a)] = of(b); }

 private:
  std::vector<uint32_t> parent_;
};

// May the op hold on to its inputs when it has run? Updates of variables by a rule and reads do not.
bool may_hold(const Node& node) {
  if (node.op->stateful && !node.op->reads_variable && !node.op->many) return true;
  if (!functions_of(node).empty()) return true;
  return std::any_of(node.dtypes.begin(), node.dtypes.end(), [](DType t) { return !is_plain(t); });
}

struct Life {
  bool fits = true;
  int64_t bytes = 0;
  int begin = -1, end = -1;
};

}  // namespace

void Plan::plan_places(const std::vector<int>& last_use, const std::vector<bool>& is_result, bool in_place) {
  const auto num_steps = static_cast<int>(steps_.size());
  // The steps of a chain run together: what one of them needs or makes lives from the first to the last.
  std::vector<int> first(steps_.size()), last(steps_.size());
  std::vector<bool> inner(num_slots_, false);  // never stored
  for (int i = 0; i < num_steps; ++i) first[static_cast<size_t>(i)] = last[static_cast<size_t>(i)] = i;
  for (int i = 0; i < num_steps; ++i) {
    const int chain = steps_[static_cast<size_t>(i)].chain;
    if (chain < 0) continue;
    const Chain& c = chains_[static_cast<size_t>(chain)];
    const int end = i + static_cast<int>(c.length) - 1;
    for (int k = i; k <= end; ++k) {
      first[static_cast<size_t>(k)] = i;
      last[static_cast<size_t>(k)] = end;
    }
    for (const BlockChain::Value& v : c.blocks.values()) {
      if (v.kind == BlockChain::Value::inner) inner[v.slot] = true;
    }
  }

  // What the executor makes room for, and who makes it.
  std::vector<int64_t> bytes(num_slots_, 0);
  std::vector<int> made_by(num_slots_, -1);
  for (int i = 0; i < num_steps; ++i) {
    const Step& step = steps_[static_cast<size_t>(i)];
    for (uint32_t k = 0; k < step.num_outputs; ++k) {
      const uint32_t slot = step.first_output + k;
      made_by[slot] = i;
      if (!step.ready || !step.allocate || !is_plain(step.dtypes[k]) || inner[slot]) continue;
      bytes[slot] = shapes_[step.first_shape + k].num_elements() * static_cast<int64_t>(dtype_size(step.dtypes[k]));
    }
  }

  Groups groups(num_slots_);
  for (const Step& step : steps_) {
    if (step.allocate) continue;
    for (uint32_t i = 0; i < step.num_inputs; ++i) {
      // What the host reads to decide (shapes, axes) is not handed on.
      if (step.op->input_spec(static_cast<int>(i), static_cast<int>(step.num_inputs)).host_memory) continue;
      const uint32_t in = input_slots_[step.first_input + i];
      for (uint32_t k = 0; k < step.num_outputs; ++k) groups.join(in, step.first_output + k);
    }
  }
  std::vector<Life> lives(num_slots_);  // by group
  for (uint32_t s = 0; s < num_slots_; ++s) {
    if (inner[s]) continue;
    Life& life = lives[groups.of(s)];
    const int maker = made_by[s];
    // A caller's value, a constant, a result, a value of unknown size, several values that one view may show: they and
    // all views of them stay outside.
    const bool forwarded = maker >= 0 && !steps_[static_cast<size_t>(maker)].allocate;
    if (maker < 0 || is_result[s] || (!forwarded && (bytes[s] == 0 || life.bytes > 0))) life.fits = false;
    if (maker < 0) continue;
    life.bytes = std::max(life.bytes, bytes[s]);
    const int begin = first[static_cast<size_t>(maker)], end = last[static_cast<size_t>(last_use[s])];
    life.begin = life.begin < 0 ? begin : std::min(life.begin, begin);
    life.end = std::max(life.end, end);
  }
  for (const Step& step : steps_) {
    if (!may_hold(*step.node)) continue;
    for (uint32_t i = 0; i < step.num_inputs; ++i) lives[groups.of(input_slots_[step.first_input + i])].fits = false;
  }

  if (in_place) {
    std::vector<int> group_end(num_slots_, -1);  // the last step that uses the group, not widened to its chain
    for (uint32_t s = 0; s < num_slots_; ++s) {
      int& end = group_end[groups.of(s)];
      end = std::max(end, last_use[s]);
    }
    for (int i = 0; i < num_steps; ++i) {
      const Step& step = steps_[static_cast<size_t>(i)];
      const uint32_t out = step.first_output;
      if (!step.op->elementwise || step.num_outputs != 1 || bytes[out] == 0 || !lives[groups.of(out)].fits) continue;
      for (uint32_t k = 0; k < step.num_inputs; ++k) {
        const uint32_t in = input_slots_[step.first_input + k];
        const uint32_t group = groups.of(in);
        const NodeOutput& from = step.node->inputs[k];
        if (!lives[group].fits || group_end[group] != i || inner[in] || lives[group].bytes != bytes[out]) continue;
        if (!(from.node->shape(from.index) == step.node->shape()) ||
            from.node->dtype(from.index) != step.node->dtype()) {
          continue;
        }
        // Another view of the same memory may show other elements than those just written: among the inputs of the
        // step and, if it is one of a chain, of all its steps, which run again for the next block.
        bool viewed = false;
        for (int other = first[static_cast<size_t>(i)]; other <= last[static_cast<size_t>(i)] && !viewed; ++other) {
          const Step& reader = steps_[static_cast<size_t>(other)];
          for (uint32_t input = 0; input < reader.num_inputs; ++input) {
            const uint32_t slot = input_slots_[reader.first_input + input];
            if (slot == in || groups.of(slot) != group) continue;
            const NodeOutput& view = reader.node->inputs[input];
            viewed = viewed || other == i || !(view.node->shape(view.index) == step.node->shape());
          }
        }
        if (viewed) continue;
        const Life joined{true, bytes[out], std::min(lives[group].begin, lives[groups.of(out)].begin),
                          std::max(lives[group].end, lives[groups.of(out)].end)};
        const int end = group_end[groups.of(out)];
        groups.join(out, in);
        lives[groups.of(in)] = joined;
        group_end[groups.of(in)] = end;
        break;
      }
    }
  }

  std::vector<MemoryRequest> requests;
  std::vector<int> request_of(num_slots_, -1);  // by group
  std::vector<uint32_t> placed;
  for (uint32_t s = 0; s < num_slots_; ++s) {
    if (bytes[s] == 0) continue;
    const uint32_t group = groups.of(s);
    const Life& life = lives[group];
    if (!life.fits) continue;
    if (request_of[group] < 0) {
      request_of[group] = static_cast<int>(requests.size());
      requests.push_back({life.bytes, life.begin, life.end});
    }
    placed.push_back(s);
  }
  const MemoryPlan plan = plan_memory(requests);
  for (const uint32_t s : placed) {
    const Step& step = steps_[static_cast<size_t>(made_by[s])];
    const uint32_t k = s - step.first_output;
    place_of_[s] = static_cast<int>(places_.size());
    places_.push_back({s, step.dtypes[k], shapes_[step.first_shape + k],
                       static_cast<size_t>(plan.offsets[static_cast<size_t>(request_of[groups.of(s)])])});
  }
  memory_use_ = {plan.size, largest_live(requests)};
}

}  // namespace runnel
