// The list itself: versions over a shared store.
#include "runnel/ops/tensor_list.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "runnel/base/format.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

std::atomic<int64_t> copies{0};

}  // namespace

// What the versions of one list share: for every item its newest value and the earlier values that some version still
// sees. Items that were never written have no cell, so a list of n empty places costs nothing.
class TensorList::Store {
 public:
  // NOLINTNEXTLINE(performance-unnecessary-value-param): its items are moved from
  explicit Store(std::vector<std::pair<int64_t, Tensor>> items) {
    live_.insert(0);
    for (auto& [i, item] : items) {
      if (item.defined()) cells_[i].now = {0, std::move(item)};
    }
  }

  Tensor read(int64_t i, uint64_t version) const {
    std::lock_guard lock(mutex_);
    return seen(i, version);
  }
  Writes read_all(uint64_t version) const {
    std::lock_guard lock(mutex_);
    return all_seen(version);
  }

  size_t num_cells() const {
    std::lock_guard lock(mutex_);
    return cells_.size();
  }

  // The version after `base` with the writes; nothing when `base` is not the newest one.
  std::optional<uint64_t> write(uint64_t base, int64_t old_size, int64_t size, const Writes& writes) {
    std::lock_guard lock(mutex_);
    if (base != newest_) return std::nullopt;
    const uint64_t next = newest_ + 1;
    for (int64_t i = size; i < old_size; ++i) {
      if (cells_.contains(i)) set(i, Tensor(), next);
    }
    for (const auto& [i, item] : writes) set(i, item, next);
    newest_ = next;
    live_.insert(next);
    return next;
  }

  // A version dies. With the last but one of them every earlier value goes: each write is cleaned up after once.
  void forget(uint64_t version) {
    std::vector<Tensor> dropped;  // destroyed after the lock: an item may be a list that asks for a lock itself
    std::lock_guard lock(mutex_);
    live_.erase(version);
    if (live_.size() != 1) return;
    const uint64_t last = *live_.begin();
    for (int64_t i : touched_) {
      auto it = cells_.find(i);
      if (it == cells_.end()) continue;
      Tensor value = seen(i, last);
      for (Entry& e : it->second.before) dropped.push_back(std::move(e.value));
      dropped.push_back(std::move(it->second.now.value));
      if (value.defined()) {
        it->second = Cell{{last, std::move(value)}, {}};
      } else {
        cells_.erase(it);
      }
    }
    touched_.clear();
    newest_ = last;
  }

 private:
  struct Entry {
    uint64_t version = 0;  // the first that sees the value
    Tensor value;
  };
  struct Cell {
    Entry now;
    std::vector<Entry> before;  // by version
    size_t prune_at = 4;
  };

  Tensor seen(int64_t i, uint64_t version) const {
    const auto it = cells_.find(i);
    if (it == cells_.end()) return {};
    const Cell& cell = it->second;
    if (cell.now.version <= version) return cell.now.value;
    auto later = std::upper_bound(cell.before.begin(), cell.before.end(), version,
                                  [](uint64_t v, const Entry& e) { return v < e.version; });
    return later == cell.before.begin() ? Tensor() : std::prev(later)->value;
  }
  Writes all_seen(uint64_t version) const {
    Writes items;
    for (const auto& entry : cells_) {
      Tensor value = seen(entry.first, version);
      if (value.defined()) items.emplace_back(entry.first, std::move(value));
    }
    return items;
  }

  void set(int64_t i, const Tensor& value, uint64_t version) {
    touched_.push_back(i);
    auto [it, fresh] = cells_.try_emplace(i);
    Cell& cell = it->second;
    if (!fresh && cell.now.version == version) {  // written twice by one op
      cell.now.value = value;
      return;
    }
    if (!fresh) {
      cell.before.push_back(std::move(cell.now));
      if (cell.before.size() >= cell.prune_at) prune(cell, version);
    }
    cell.now = {version, value};
  }

  // Leaves out values that no living version sees; `end` is the version about to be written.
  void prune(Cell& cell, uint64_t end) {
    std::vector<Entry> kept;
    for (size_t k = 0; k < cell.before.size(); ++k) {
      const uint64_t until = k + 1 < cell.before.size() ? cell.before[k + 1].version : end;
      const auto it = live_.lower_bound(cell.before[k].version);
      if (it != live_.end() && *it < until) kept.push_back(std::move(cell.before[k]));
    }
    cell.before = std::move(kept);
    cell.prune_at = 2 * cell.before.size() + 4;
  }

  mutable std::mutex mutex_;
  uint64_t newest_ = 0;
  std::set<uint64_t> live_;
  std::unordered_map<int64_t, Cell> cells_;
  std::vector<int64_t> touched_;  // cells written since only one version was left
};

TensorList::TensorList(DType element_dtype, PartialShape element_shape, int64_t size, int64_t max_num_elements)
    : element_dtype_(element_dtype),
      element_shape_(std::move(element_shape)),
      size_(size),
      max_num_elements_(max_num_elements),
      store_(std::make_shared<Store>(Writes{})) {}

TensorList::TensorList(DType element_dtype, PartialShape element_shape, std::vector<Tensor> items)
    : element_dtype_(element_dtype),
      element_shape_(std::move(element_shape)),
      size_(static_cast<int64_t>(items.size())) {
  Writes writes;
  writes.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) writes.emplace_back(static_cast<int64_t>(i), std::move(items[i]));
  store_ = std::make_shared<Store>(std::move(writes));
}

TensorList::TensorList(const TensorList& like, int64_t size, std::shared_ptr<Store> store, uint64_t version)
    : element_dtype_(like.element_dtype_),
      element_shape_(like.element_shape_),
      size_(size),
      max_num_elements_(like.max_num_elements_),
      store_(std::move(store)),
      version_(version) {}

TensorList::~TensorList() { store_->forget(version_); }

std::string TensorList::describe() const {
  return fmt::format("TensorList of {} x {}{}", size_, dtype_name(element_dtype_), element_shape_.str());
}

Tensor TensorList::item(int64_t i) const { return store_->read(i, version_); }

std::vector<Tensor> TensorList::items() const {
  std::vector<Tensor> all(static_cast<size_t>(size_));
  for (auto& [i, item] : store_->read_all(version_)) all[static_cast<size_t>(i)] = std::move(item);
  return all;
}

TensorList::Writes TensorList::written() const { return store_->read_all(version_); }

size_t TensorList::num_written_at_most() const { return store_->num_cells(); }

std::shared_ptr<const TensorList> TensorList::changed(int64_t size, const Writes& writes) const {
  // A store must not hold a version of itself: it would never be freed.
  bool cyclic = false;
  if (element_dtype_ == DType::variant) {
    for (const auto& write : writes) cyclic = cyclic || reaches(write.second, store_.get());
  }
  std::optional<uint64_t> version;
  if (!cyclic) version = store_->write(version_, size_, size, writes);
  std::shared_ptr<Store> store = store_;
  if (!version) {
    ++copies;
    Writes items = store_->read_all(version_);
    std::erase_if(items, [&](const auto& each) { return each.first >= size; });
    items.insert(items.end(), writes.begin(), writes.end());
    store = std::make_shared<Store>(std::move(items));
    version = 0;
  }
  return std::shared_ptr<const TensorList>(new TensorList(*this, size, std::move(store), *version));
}

bool TensorList::reaches(const Tensor& item, const Store* store) {
  if (!item.defined() || item.dtype() != DType::variant) return false;
  for (const VariantValue& v : item.host<VariantValue>()) {
    const auto* list = dynamic_cast<const TensorList*>(v.object.get());
    if (!list) continue;
    if (list->store_.get() == store) return true;
    if (list->element_dtype_ != DType::variant) continue;
    for (const auto& each : list->written()) {
      if (reaches(each.second, store)) return true;
    }
  }
  return false;
}

int64_t TensorList::num_copies() { return copies; }

Tensor make_list_tensor(std::shared_ptr<const TensorList> list) {
  Tensor t = Tensor::empty(DType::variant, {});
  t.mutable_data<VariantValue>()->object = std::move(list);
  return t;
}

const TensorList& tensor_list(const VariantValue& value) {
  const auto* list = dynamic_cast<const TensorList*>(value.object.get());
  if (!list) {
    throw invalid_argument("the variant holds no TensorList but {}",
                           value.object ? value.object->describe() : "nothing");
  }
  return *list;
}

const TensorList& tensor_list(const Tensor& handle) {
  if (handle.num_elements() != 1) {
    throw invalid_argument("one TensorList needed, got variants of shape {}", handle.shape().str());
  }
  return tensor_list(*handle.data<VariantValue>());
}

VariantValue zeros_like_variant(const VariantValue& x) {
  if (!x.object) return {};
  const TensorList& list = tensor_list(x);
  auto zeros = std::make_shared<const TensorList>(list.element_dtype(), list.element_shape(), list.size(),
                                                  list.max_num_elements());
  // An item nobody wrote is zero already where the list knows its shape.
  if (list.element_shape().is_static() && list.element_dtype() != DType::variant) return {zeros};
  const Unrecorded unrecorded;
  TensorList::Writes items = list.written();
  for (auto& each : items) each.second = zeros_like(each.second);
  return {zeros->changed(list.size(), items)};
}

VariantValue add_variants(const VariantValue& a, const VariantValue& b) {
  if (!a.object) return b;
  if (!b.object) return a;
  const TensorList& x = tensor_list(a);
  const TensorList& y = tensor_list(b);
  if (x.element_dtype() != y.element_dtype() || x.size() != y.size()) {
    throw invalid_argument("lists of one length and dtype can be added, got a {} and a {}", x.describe(), y.describe());
  }
  // Few items are written into the list of many: adding up the gradients of n reads takes n steps.
  const bool swap = x.num_written_at_most() < y.num_written_at_most();
  const TensorList& to = swap ? y : x;
  TensorList::Writes more = (swap ? x : y).written();
  const Unrecorded unrecorded;
  for (auto& [i, item] : more) {
    const Tensor other = to.item(i);
    if (!other.defined()) continue;
    const Tensor& first = swap ? item : other;
    const Tensor& second = swap ? other : item;
    item = item.dtype() == DType::variant ? add_n({first, second}) : add(first, second);
  }
  return {to.changed(to.size(), more)};
}

}  // namespace runnel
