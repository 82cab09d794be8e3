#include "runnel/data/input_log.h"

namespace runnel::data {

InputLog::InputLog(IteratorPtr input, int64_t every, std::function<int64_t()> oldest)
    : input_(std::move(input)), every_(every), oldest_(std::move(oldest)) {}

// The latest state before every element that is held back.
std::deque<InputLog::Kept>::const_iterator InputLog::needed() const {
  const int64_t oldest = oldest_();
  auto at = kept_.begin();
  while (std::next(at) != kept_.end() && std::next(at)->at <= oldest) ++at;
  return at;
}

void InputLog::keep() {
  if (pulled_ % every_ != 0) return;
  if (!kept_.empty() && kept_.back().at == pulled_) return;
  StateWriter w;
  input_->save(w);
  kept_.push_back({pulled_, w.take()});
  kept_.erase(kept_.begin(), needed());
}

bool InputLog::pull(Item& out) {
  keep();
  if (!input_->next(out)) return false;
  ++pulled_;
  return true;
}

void InputLog::save(StateWriter& out) const {
  out.integer(static_cast<uint64_t>(pulled_));
  if (kept_.empty()) {
    out.integer(static_cast<uint64_t>(pulled_));
    save_nested(*input_, out);
    return;
  }
  const auto from = needed();
  out.integer(static_cast<uint64_t>(from->at));
  out.text(from->state);
}

void InputLog::restore(StateReader& in, const std::function<void(int64_t number, Item& item)>& each) {
  const int64_t until = in.count();
  kept_.clear();
  pulled_ = in.count();
  restore_nested(*input_, in);
  // Nothing may be forgotten while the stage is put together again.
  const std::function<int64_t()> oldest = std::exchange(oldest_, [first = pulled_] { return first; });
  while (pulled_ < until) {
    Item item;
    try {
      if (!pull(item)) {
        oldest_ = oldest;
        throw Error(Code::data_loss, "[restore] the input has fewer elements than when the state was saved");
      }
    } catch (const Error& e) {
      if (e.code() == Code::cancelled || e.code() == Code::data_loss) throw;
      continue;  // it was delivered before the state was saved
    }
    each(pulled_ - 1, item);
  }
  oldest_ = oldest;
}

}  // namespace runnel::data
