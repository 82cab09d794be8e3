#include "runnel/base/profile_lane.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace runnel::profile {
namespace {

constexpr size_t kFirstBlock = size_t{16} << 10;  // of threads that may have little to tell
constexpr size_t kLargeBlock = size_t{256} << 10;

}  // namespace

Lane::Lane(uint64_t recording, std::shared_ptr<LaneBudget> budget, Thread thread)
    : recording_(recording), budget_(std::move(budget)), thread_(std::move(thread)) {}

Lane::~Lane() {
  for (Block* block = first_.load(std::memory_order_acquire); block != nullptr;) {
    Block* next = block->next.load(std::memory_order_acquire);
    delete block;
    block = next;
  }
}

bool Lane::add_block(size_t at_least) noexcept {
  const size_t size = std::max(block_ == nullptr ? kFirstBlock : kLargeBlock, at_least);
  if (!budget_->take(static_cast<int64_t>(size))) return false;
  Block* made = nullptr;
  try {
    made = new Block(size);
  } catch (const std::bad_alloc&) {
    return false;
  }
  (block_ == nullptr ? first_ : block_->next).store(made, std::memory_order_release);
  block_ = made;
  filled_ = 0;
  return true;
}

char* Lane::begin(const RecordHead& head, std::string_view name) noexcept {
  const size_t size = sizeof head + head.name_size + head.payload_size;
  if (block_ == nullptr || block_->size - filled_ < size) [[unlikely]] {
    if (!add_block(size)) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
  }
  char* const at = block_->bytes.get() + filled_;
  std::memcpy(at, &head, sizeof head);
  std::memcpy(at + sizeof head, name.data(), name.size());
  filled_ += size;
  return at + sizeof head + name.size();
}

void Lane::read(FunctionRef<void(const RecordHead&, std::string_view, std::string_view)> each) const {
  for (const Block* block = first_.load(std::memory_order_acquire); block != nullptr;
       block = block->next.load(std::memory_order_acquire)) {
    const char* const bytes = block->bytes.get();
    const size_t filled = block->filled.load(std::memory_order_acquire);
    for (size_t at = 0; at < filled;) {
      RecordHead head;
      std::memcpy(&head, bytes + at, sizeof head);
      const std::string_view name(bytes + at + sizeof head, head.name_size);
      const std::string_view payload(name.data() + name.size(), head.payload_size);
      each(head, name, payload);
      at += sizeof head + name.size() + payload.size();
    }
  }
}

}  // namespace runnel::profile
