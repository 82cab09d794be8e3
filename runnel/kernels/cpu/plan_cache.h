#pragma once

// Internal to kernels/cpu: what is worked out once for a kind of call and kept for the next one: primitives of oneDNN
// with their descriptions, the roots of Fourier transforms.
#include <array>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "runnel/base/export.h"

namespace runnel::cpu {

// The identity of a plan: what it does and every number that shaped it.
class RUNNEL_API PlanKey {
 public:
  static constexpr int kMaxWords = 40;
  void add(int64_t word) { words_[static_cast<size_t>(size_++)] = word; }
  bool operator==(const PlanKey& other) const;
  size_t hash() const;

 private:
  std::array<int64_t, kMaxWords> words_;
  int size_ = 0;
};

struct RUNNEL_API Plan {
  virtual ~Plan() = default;
  virtual size_t bytes() const { return 0; }  // that count against what a cache may hold
};

// Plans by key: thread-safe, least recently used leaves first, until the others are few and small enough; the newest
// stays. A plan in use stays alive through its shared_ptr. Making one takes long and happens outside the lock.
class RUNNEL_API PlanCache {
 public:
  explicit PlanCache(size_t capacity, size_t max_bytes = std::numeric_limits<size_t>::max())
      : capacity_(capacity), max_bytes_(max_bytes) {}

  template <class P, class Make>
  std::shared_ptr<const P> get(const PlanKey& key, Make&& make) {
    if (auto hit = find(key)) return std::static_pointer_cast<const P>(std::move(hit));
    return std::static_pointer_cast<const P>(insert(key, std::forward<Make>(make)()));
  }
  size_t size() const;

 private:
  struct Hash {
    size_t operator()(const PlanKey& key) const { return key.hash(); }
  };
  using Value = std::shared_ptr<const Plan>;
  using Entries = std::list<std::pair<PlanKey, Value>>;

  Value find(const PlanKey& key);
  Value insert(const PlanKey& key, Value value);

  const size_t capacity_, max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;   // most recently used first
  size_t bytes_ = 0;  // of their plans
  std::unordered_map<PlanKey, Entries::iterator, Hash> index_;
};

}  // namespace runnel::cpu
