// Which trace serves a call, and why there is none: signatures, and sizes that are left open after misses.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/function/core_state.h"
#include "runnel/op/composed.h"

namespace runnel::function_detail {

Core::Core(FunctionOptions options) : options_(std::move(options)), state_(std::make_unique<State>()) {}
Core::~Core() = default;

bool Trace::fits(const CallKey& key) const {
  if (words.size() != key.words.size()) return false;
  if (any.empty()) return std::equal(words.begin(), words.end(), key.words.begin());
  auto wild = any.begin();
  for (uint32_t i = 0; i < words.size(); ++i) {
    if (wild != any.end() && *wild == i) {
      ++wild;
    } else if (words[i] != key.words[i]) {
      return false;
    }
  }
  return true;
}

bool Trace::fits_but_for_tensors(const CallKey& key) const {
  // The next word that is not of a tensor.
  const auto skip = [](const auto& all, const auto& at, uint32_t& word, size_t& tensor) {
    while (tensor < at.size() && at[tensor] == word) {
      const uint64_t rank = all[word] & 0xff;
      word += 1 + (rank == 0xff ? 0 : static_cast<uint32_t>(rank));
      ++tensor;
    }
  };
  uint32_t mine = 0, its = 0;
  size_t my_tensor = 0, its_tensor = 0;
  for (;;) {
    skip(words, tensors_at, mine, my_tensor);
    skip(key.words, key.tensors_at, its, its_tensor);
    if (mine == words.size() || its == key.words.size()) return mine == words.size() && its == key.words.size();
    if (my_tensor != its_tensor || words[mine++] != key.words[its++]) return false;
  }
}

TracePtr Core::find(const CallKey& key) {
  const std::lock_guard lock(state_->mutex);
  return find_locked(key);
}

TracePtr Core::find_locked(const CallKey& key) {
  const bool by_signature = !options_.input_signature.empty();
  for (size_t i = 0; i < state_->traces.size(); ++i) {
    if (!(by_signature ? state_->traces[i]->fits_but_for_tensors(key) : state_->traces[i]->fits(key))) continue;
    if (i > 0)
      std::rotate(state_->traces.begin(), state_->traces.begin() + static_cast<ptrdiff_t>(i),
                  state_->traces.begin() + static_cast<ptrdiff_t>(i) + 1);
    return state_->traces[0];
  }
  return nullptr;
}

std::vector<TensorSpec> Core::specs_of(const CallKey& key) const {
  std::vector<TensorSpec> specs;
  size_t given = 0;
  for (const Tensor* t : key.tensors) {
    specs.push_back(t ? TensorSpec{t->partial_shape(), t->dtype(), ""} : key.specs[given++]);
  }
  if (options_.input_signature.empty()) return specs;
  const auto& wanted = options_.input_signature;
  if (wanted.size() != specs.size()) {
    throw invalid_argument("[{}] has an input signature of {} tensors, called with {}{}", options_.name, wanted.size(),
                           specs.size(), user_line(key.where).at());
  }
  return wanted;
}

std::string Core::difference(const CallKey& key, const CallText& text) const {
  const CallText& old = state_->traces[0]->text;
  if (state_->traces[0]->words[0] != key.words[0]) {
    return fmt::format("training: was {}, now {}", !key.training(), key.training());
  }
  for (size_t i = 0; i < std::min(old.size(), text.size()); ++i) {
    if (old[i] != text[i]) {
      return old[i].first == text[i].first
                 ? fmt::format("{}: was {}, now {}", text[i].first, old[i].second, text[i].second)
                 : fmt::format("{} stands where {} was", text[i].first, old[i].first);
    }
  }
  if (old.size() != text.size()) return fmt::format("{} things where {} were", text.size(), old.size());
  if (state_->traces[0]->words[1] != key.types()) return "the C++ types of the arguments";
  return "its trace was forgotten: more signatures than max_traces";
}

// After two misses on a dimension it is taken to be unknown.
void Core::generalise(const CallKey& key, std::vector<TensorSpec>& specs, Trace& trace) {
  std::vector<uint64_t> family(key.words.begin(), key.words.end());
  for (const uint32_t at : key.dims_at) family[at] = ~uint64_t{0};
  const Trace* latest = nullptr;
  for (const TracePtr& t : state_->traces) {
    if (t->words.size() != key.words.size()) continue;
    std::vector<uint64_t> other(t->words.begin(), t->words.end());
    for (const uint32_t at : key.dims_at) other[at] = ~uint64_t{0};
    if (other == family) {
      latest = t.get();
      break;
    }
  }
  if (!latest) return;
  auto& count = state_->misses[family];
  for (const uint32_t at : key.dims_at) {
    if (latest->words[at] != key.words[at]) ++count[at];
    if (count[at] >= 2) trace.any.push_back(at);
  }
  // The dimensions of the tensors stand in dims_at in order.
  size_t k = 0;
  for (TensorSpec& spec : specs) {
    if (!spec.shape.has_rank()) continue;
    Dims dims = spec.shape.dims();
    for (int64_t& d : dims) {
      if (std::find(trace.any.begin(), trace.any.end(), key.dims_at[k++]) != trace.any.end()) d = kUnknownDim;
    }
    spec.shape = PartialShape(dims);
  }
}

std::vector<std::string> Core::why_retraced() const {
  const std::lock_guard lock(state_->mutex);
  return state_->why;
}

int Core::num_traces() const {
  const std::lock_guard lock(state_->mutex);
  return state_->traced;
}

}  // namespace runnel::function_detail
