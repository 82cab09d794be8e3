#pragma once

// Internal: the memory that one thread writes its events to, and who reads it.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "runnel/base/function_ref.h"
#include "runnel/base/profile_scope.h"

namespace runnel::profile {

// How much memory the lanes of one recording may still take.
class LaneBudget {
 public:
  explicit LaneBudget(int64_t bytes) : left_(bytes) {}
  bool take(int64_t bytes) {
    if (left_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes) return true;
    left_.fetch_add(bytes, std::memory_order_relaxed);
    return false;
  }

 private:
  std::atomic<int64_t> left_;
};

// What stands before the texts of an event or a sample.
struct RecordHead {
  enum class What : uint8_t { event, memory };
  int64_t begin_ticks;
  int64_t end_ticks;
  int64_t step;
  int64_t bytes;  // of a sample: those that live
  double flops;
  Reader reader;
  const void* subject;
  uint32_t name_size;
  uint32_t payload_size;
  Kind kind;
  What what;
};

// One thread writes, any thread reads: what was published never changes, and blocks stay until the lane goes. So nobody
// waits, and what is written while somebody reads is not seen rather than seen in part.
class Lane {
 public:
  Lane(uint64_t recording, std::shared_ptr<LaneBudget> budget, Thread thread);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  uint64_t recording() const { return recording_; }
  const Thread& thread() const { return thread_; }

  // Of the writer: room for the texts of a record, null where there is none; publish() makes it one for readers.
  char* begin(const RecordHead& head, std::string_view name) noexcept;
  void publish() noexcept { block_->filled.store(filled_, std::memory_order_release); }

  // Of readers.
  void read(FunctionRef<void(const RecordHead&, std::string_view name, std::string_view payload)> each) const;
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Block {
    explicit Block(size_t size) : bytes(new char[size]), size(size) {}
    const std::unique_ptr<char[]> bytes;
    const size_t size;
    std::atomic<size_t> filled = 0;
    std::atomic<Block*> next = nullptr;
  };
  bool add_block(size_t at_least) noexcept;

  const uint64_t recording_;
  const std::shared_ptr<LaneBudget> budget_;
  const Thread thread_;
  std::atomic<Block*> first_ = nullptr;
  std::atomic<int64_t> lost_ = 0;
  // The writer's.
  Block* block_ = nullptr;
  size_t filled_ = 0;  // of block_, what is not yet published included
};

}  // namespace runnel::profile
