#pragma once

#include <cstdint>
#include <vector>

namespace runnel {

// A small hash map from addresses to ids (open addressing): one look-up per input and output of every recorded op.
class IdMap {
 public:
  static constexpr int32_t kAbsent = -1;

  int32_t find(const void* key) const {
    if (slots_.empty()) return kAbsent;
    for (size_t i = start(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].id;
      if (slots_[i].key == nullptr) return kAbsent;
    }
  }

  // Sets the id of a key, replacing an earlier one.
  void set(const void* key, int32_t id) {
    if (slots_.size() < 2 * (used_ + 1)) grow();
    for (size_t i = start(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == nullptr) ++used_;
      if (slots_[i].key == nullptr || slots_[i].key == key) {
        slots_[i] = {key, id};
        return;
      }
    }
  }

  void clear() {
    slots_.clear();
    used_ = 0;
  }

 private:
  struct Slot {
    const void* key = nullptr;
    int32_t id = 0;
  };

  size_t start(const void* key) const {
    // Objects are at least 64 bytes apart; the multiplication spreads what is left.
    const uint64_t h = (reinterpret_cast<uintptr_t>(key) >> 6) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(h >> 32) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    used_ = 0;
    for (const Slot& s : old) {
      if (s.key) set(s.key, s.id);
    }
  }

  std::vector<Slot> slots_;  // size is a power of two
  size_t used_ = 0;
};

}  // namespace runnel
