#include "runnel/tensor/allocator.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"

namespace runnel::host_memory {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kSmallLimit = size_t{64} << 10;       // up to here a block lives in a thread's cache
constexpr size_t kHuge = size_t{2} << 20;              // from here memory is mapped on huge-page boundaries
constexpr size_t kThreadCacheBytes = size_t{1} << 20;  // per size class and thread
constexpr size_t kSharedCacheBytes = size_t{4} << 30;  // beyond this, freed blocks go back to the system

// Four size classes per power of two, sixteen from a megabyte on: at most 25%, or 6%, is wasted.
constexpr int kFineLog = 20;
constexpr int kFirstFine = 4 * (kFineLog - 7);
constexpr int class_of(size_t bytes) {
  if (bytes <= 4 * kAlign) return bytes <= kAlign ? 0 : static_cast<int>((bytes - 1) / kAlign);
  const int log = std::bit_width(bytes - 1) - 1;  // bytes - 1 in [2^log, 2^(log+1))
  if (log < kFineLog) return 4 * (log - 7) + static_cast<int>(((bytes - 1) >> (log - 2)) & 3);
  return kFirstFine + 16 * (log - kFineLog) + static_cast<int>(((bytes - 1) >> (log - 4)) & 15);
}
constexpr size_t class_bytes(int c) {
  if (c < 4) return static_cast<size_t>(c + 1) * kAlign;
  if (c < kFirstFine) {
    const int log = c / 4 + 7;
    return (size_t{1} << log) + (static_cast<size_t>(c % 4) + 1) * (size_t{1} << (log - 2));
  }
  const int log = kFineLog + (c - kFirstFine) / 16;
  return (size_t{1} << log) + (static_cast<size_t>((c - kFirstFine) % 16) + 1) * (size_t{1} << (log - 4));
}
static_assert(class_bytes(class_of(1)) == 64 && class_bytes(class_of(256)) == 256);
static_assert(class_bytes(class_of(257)) == 320 && class_bytes(class_of(1025)) == 1280);
static_assert(class_bytes(class_of(kSmallLimit)) == kSmallLimit);
static_assert(class_bytes(class_of(size_t{1} << kFineLog)) == size_t{1} << kFineLog);
static_assert(class_bytes(class_of((size_t{1} << kFineLog) + 1)) == (size_t{17} << (kFineLog - 4)));

constexpr int kClasses = class_of(size_t{1} << 46) + 1;
constexpr int kSmallClasses = class_of(kSmallLimit) + 1;

struct FreeBlock {
  FreeBlock* next;
};

std::atomic<int64_t> in_use{0}, peak{0}, from_system{0};

void* map_aligned(size_t bytes) {
  // Over-map and cut, so that the block starts on a huge page.
  char* p =
      static_cast<char*>(mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (p == MAP_FAILED) return nullptr;
  const size_t head = (kHuge - reinterpret_cast<uintptr_t>(p) % kHuge) % kHuge;
  if (head > 0) munmap(p, head);
  if (kHuge - head > 0) munmap(p + head + bytes, kHuge - head);
  madvise(p + head, bytes, MADV_HUGEPAGE);
  return p + head;
}

void* system_allocate(size_t bytes) {
  from_system.fetch_add(1, std::memory_order_relaxed);
  return bytes >= kHuge ? map_aligned(bytes) : std::aligned_alloc(kAlign, bytes);
}
void system_release(void* block, size_t bytes) {
  if (bytes >= kHuge) {
    munmap(block, bytes);
  } else {
    std::free(block);
  }
}

class SharedCache {
 public:
  void* take(int c) {
    std::lock_guard lock(mutex_);
    auto& list = blocks_[static_cast<size_t>(c)];
    if (list.empty()) return nullptr;
    void* block = list.back();
    list.pop_back();
    cached_ -= class_bytes(c);
    return block;
  }
  void put(int c, void* block) noexcept {
    const size_t bytes = class_bytes(c);
    {
      std::lock_guard lock(mutex_);
      if (cached_ + bytes <= kSharedCacheBytes) {
        blocks_[static_cast<size_t>(c)].push_back(block);
        cached_ += bytes;
        return;
      }
    }
    system_release(block, bytes);
  }
  size_t cached() {
    std::lock_guard lock(mutex_);
    return cached_;
  }
  void trim() {
    std::array<std::vector<void*>, kClasses> all;
    {
      std::lock_guard lock(mutex_);
      all.swap(blocks_);
      cached_ = 0;
    }
    for (int c = 0; c < kClasses; ++c) {
      for (void* block : all[static_cast<size_t>(c)]) system_release(block, class_bytes(c));
    }
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> blocks_;
  size_t cached_ = 0;
};

// Never destroyed: tensors in static storage may be freed after main.
SharedCache& shared_cache() {
  static auto* cache = new SharedCache;
  return *cache;
}

struct ThreadCache {
  std::array<FreeBlock*, kSmallClasses> head{};
  std::array<uint32_t, kSmallClasses> count{};
  ~ThreadCache();
};

// Plain pointer with constant initialisation: reading it costs no guard. Null before first use and after the
// thread's cache was destroyed (blocks freed later go to the shared cache).
thread_local ThreadCache* thread_cache = nullptr;
thread_local bool thread_cache_gone = false;

ThreadCache::~ThreadCache() {
  thread_cache = nullptr;
  thread_cache_gone = true;
  for (int c = 0; c < kSmallClasses; ++c) {
    for (FreeBlock* b = head[static_cast<size_t>(c)]; b != nullptr;) {
      FreeBlock* next = b->next;
      shared_cache().put(c, b);
      b = next;
    }
  }
}

ThreadCache* make_thread_cache() {
  if (thread_cache_gone) return nullptr;
  static thread_local ThreadCache cache;
  thread_cache = &cache;
  return &cache;
}

void note_use(int64_t bytes) {
  const int64_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
  if (profile::recording()) [[unlikely]]
    profile::sample_memory(now);
}

void* allocate_uncached(int c) {
  if (void* block = shared_cache().take(c)) return block;
  const size_t bytes = class_bytes(c);
  if (void* block = system_allocate(bytes)) return block;
  trim();
  if (void* block = system_allocate(bytes)) return block;
  throw make_error(Code::resource_exhausted, "out of memory: {} bytes asked, {} in use", bytes, in_use.load());
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes > (size_t{1} << 46)) {
    throw make_error(Code::resource_exhausted, "out of memory: a tensor of {} bytes", bytes);
  }
  const int c = class_of(bytes);
  if (c < kSmallClasses) [[likely]] {
    ThreadCache* cache = thread_cache ? thread_cache : make_thread_cache();
    if (cache) {
      FreeBlock*& head = cache->head[static_cast<size_t>(c)];
      if (head) {
        FreeBlock* block = head;
        head = block->next;
        --cache->count[static_cast<size_t>(c)];
        return block;
      }
    }
    return allocate_uncached(c);
  }
  void* block = allocate_uncached(c);
  // Only blocks that bypass the thread caches are counted: counting every small one would cost more than it.
  note_use(static_cast<int64_t>(class_bytes(c)));
  return block;
}

void release(void* block, size_t bytes) noexcept {
  const int c = class_of(bytes);
  if (c < kSmallClasses) [[likely]] {
    ThreadCache* cache = thread_cache ? thread_cache : make_thread_cache();
    if (cache && cache->count[static_cast<size_t>(c)] < kThreadCacheBytes / class_bytes(c)) {
      auto* free_block = static_cast<FreeBlock*>(block);
      free_block->next = cache->head[static_cast<size_t>(c)];
      cache->head[static_cast<size_t>(c)] = free_block;
      ++cache->count[static_cast<size_t>(c)];
      return;
    }
  } else {
    const auto size = static_cast<int64_t>(class_bytes(c));
    const int64_t now = in_use.fetch_sub(size, std::memory_order_relaxed) - size;
    if (profile::recording()) [[unlikely]]
      profile::sample_memory(now);
  }
  shared_cache().put(c, block);
}

Stats stats() {
  return {.in_use = in_use.load(),
          .cached = static_cast<int64_t>(shared_cache().cached()),
          .peak = peak.load(),
          .from_system = from_system.load()};
}

void reset_peak() { peak.store(in_use.load()); }

void trim() { shared_cache().trim(); }

}  // namespace runnel::host_memory
