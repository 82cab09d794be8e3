#include "runnel/kernels/cpu/plan_cache.h"

#include <algorithm>

namespace runnel::cpu {

bool PlanKey::operator==(const PlanKey& other) const {
  return size_ == other.size_ && std::equal(words_.begin(), words_.begin() + size_, other.words_.begin());
}

size_t PlanKey::hash() const {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < size_; ++i) {
    h = (h ^ static_cast<uint64_t>(words_[static_cast<size_t>(i)])) * 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
  }
  return h;
}

size_t PlanCache::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

PlanCache::Value PlanCache::find(const PlanKey& key) {
  std::lock_guard lock(mutex_);
  const auto it = index_.find(key);
  if (it == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->second;
}

PlanCache::Value PlanCache::insert(const PlanKey& key, Value value) {
  std::lock_guard lock(mutex_);
  if (const auto it = index_.find(key); it != index_.end()) {
    return it->second->second;  // another thread made the same plan meanwhile
  }
  entries_.emplace_front(key, std::move(value));
  try {
    index_.emplace(key, entries_.begin());
  } catch (...) {  // no memory: neither knows it
    entries_.pop_front();
    throw;
  }
  Value result = entries_.front().second;
  bytes_ += result->bytes();
  while (entries_.size() > 1 && (entries_.size() > capacity_ || bytes_ > max_bytes_)) {
    bytes_ -= entries_.back().second->bytes();
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return result;
}

}  // namespace runnel::cpu
