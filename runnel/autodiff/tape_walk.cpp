// The reverse walk over what a tape recorded.
#include "runnel/autodiff/tape_state.h"
#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {

void accumulate(Gradient& sum, Gradient more) {
  if (!more.defined()) return;
  if (!sum.defined()) {
    sum = std::move(more);
  } else if (sum.is_slices() && more.is_slices()) {
    sum = merge_slices(sum.slices(), more.slices());
  } else {
    const Tensor a = sum.value();
    const Tensor b = more.value();
    sum = a.dtype() == DType::variant ? add_n({a, b}) : add(a, b);
  }
}

void GradientTape::State::back(const Entry& e, std::vector<Gradient>& grads, const std::vector<bool>& needed) {
  const int32_t* in_ids = content_.tensor_ids.data() + e.first;
  const int32_t* out_ids = in_ids + e.inputs;
  const auto num_inputs = static_cast<int>(e.inputs);
  const auto num_outputs = static_cast<int>(e.outputs);
  uint64_t wanted = 0;
  for (int i = 0; i < num_inputs; ++i) {
    if (in_ids[i] >= 0 && needed[static_cast<size_t>(in_ids[i])]) wanted |= uint64_t{1} << std::min(i, 63);
  }
  if (wanted == 0) return;
  ShortList<Gradient> dy(num_outputs);
  bool reached = false;
  for (int i = 0; i < num_outputs; ++i) {
    if (out_ids[i] < 0) continue;
    dy[i] = std::move(grads[static_cast<size_t>(out_ids[i])]);
    grads[static_cast<size_t>(out_ids[i])] = Gradient();
    reached = reached || dy[i].defined();
  }
  if (!reached) return;
  const std::span<const Tensor> all(content_.tensors.data() + e.first, static_cast<size_t>(e.inputs + e.outputs));
  Gradients dx;
  if (e.op) {
    const GradCtx context(*e.op, all.subspan(0, e.inputs), all.subspan(e.inputs),
                          std::span<const Gradient>(dy.data(), e.outputs), wanted);
    dx = e.op->grad(context, e.attrs.get());
  } else {
    std::unique_ptr<bool[]> asked(new bool[e.inputs]);
    for (int i = 0; i < num_inputs; ++i)
      asked[static_cast<size_t>(i)] = in_ids[i] >= 0 && needed[static_cast<size_t>(in_ids[i])];
    dx = (*static_cast<const BackwardFn*>(e.attrs.get()))(std::span<const Gradient>(dy.data(), e.outputs),
                                                          std::span<const bool>(asked.get(), e.inputs));
    if (dx.size() != e.inputs) {
      throw invalid_argument("[custom_gradient] {} inputs, but {} gradients were returned", e.inputs, dx.size());
    }
  }
  for (int i = 0; i < num_inputs; ++i) {
    if (in_ids[i] >= 0 && needed[static_cast<size_t>(in_ids[i])]) {
      accumulate(grads[static_cast<size_t>(in_ids[i])], std::move(dx[static_cast<size_t>(i)]));
    }
  }
}

std::vector<Gradient> GradientTape::State::gradient(const std::vector<Tensor>& targets,
                                                    const std::vector<GradSource>& sources,
                                                    const std::vector<Tensor>& seeds, bool release) {
  std::vector<int32_t> source_ids;
  std::vector<bool> needed(static_cast<size_t>(content_.num_ids), false);  // depends on a source
  for (const GradSource& s : sources) {
    const int32_t id = s.key().defined() ? content_.id_of(s.key()) : IdMap::kAbsent;
    source_ids.push_back(id);
    if (id >= 0) needed[static_cast<size_t>(id)] = true;
  }
  for (const Entry& e : content_.entries) {
    const int32_t* ids = content_.tensor_ids.data() + e.first;
    const bool any =
        std::any_of(ids, ids + e.inputs, [&](int32_t id) { return id >= 0 && needed[static_cast<size_t>(id)]; });
    for (uint32_t i = 0; any && i < e.outputs; ++i) {
      if (ids[e.inputs + i] >= 0) needed[static_cast<size_t>(ids[e.inputs + i])] = true;
    }
  }

  if (release) content_.unread.clear();
  std::vector<Gradient> grads(static_cast<size_t>(content_.num_ids));
  for (size_t i = 0; i < targets.size(); ++i) {
    const int32_t id = content_.id_of(targets[i]);
    if (id < 0) continue;
    const bool seeded = i < seeds.size() && seeds[i].defined();
    accumulate(grads[static_cast<size_t>(id)], seeded ? seeds[i] : ones_like(targets[i]));
  }
  // A source that is itself an output keeps its gradient although the walk goes on past it.
  std::vector<Gradient> kept(sources.size());
  // NOLINTNEXTLINE(modernize-loop-convert): backwards
  for (auto e = content_.entries.rbegin(); e != content_.entries.rend(); ++e) {
    const int32_t* out_ids = content_.tensor_ids.data() + e->first + e->inputs;
    for (size_t s = 0; s < sources.size(); ++s) {
      if (source_ids[s] >= 0 && std::find(out_ids, out_ids + e->outputs, source_ids[s]) != out_ids + e->outputs) {
        kept[s] = grads[static_cast<size_t>(source_ids[s])];
      }
    }
    back(*e, grads, needed);
    if (release) {
      std::fill_n(content_.tensors.begin() + static_cast<ptrdiff_t>(e->first), e->inputs + e->outputs, Tensor());
      e->attrs.reset();
    }
  }
  std::vector<Gradient> result;
  for (size_t s = 0; s < sources.size(); ++s) {
    const int32_t id = source_ids[s];
    result.push_back(kept[s].defined() || id < 0 ? kept[s] : grads[static_cast<size_t>(id)]);
  }
  return result;
}

}  // namespace runnel
