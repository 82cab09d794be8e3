#pragma once

// Internal to kernels/cpu: what every user of oneDNN shares.
#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "runnel/base/export.h"

namespace runnel::cpu {

// oneDNN threads with OpenMP and fixes the number of threads of a primitive when it is created. We run its primitives
// from our own pool, one thread each: hold this guard around creation and execution. Restores the caller's count.
class RUNNEL_API OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

// Applies RUNNEL_ISA to oneDNN, once; dnnl_engine() includes it. True where oneDNN uses AVX-512.
bool dnnl_setup();
// True where oneDNN multiplies bfloat16 with instructions for it.
bool dnnl_bf16();
const dnnl::engine& dnnl_engine();
// A stream of the calling thread.
const dnnl::stream& dnnl_stream();

// Runs a primitive created under OneThread on raw pointers, with its scratchpad from the thread's ScratchFrame.
struct PrimitiveArg {
  int arg;
  const dnnl::memory::desc* desc;
  const void* data;
};
void run_primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                   std::initializer_list<PrimitiveArg> args);
// The same for a reorder between two plain or blocked descriptions.
void run_reorder(const dnnl::reorder& reorder, const dnnl::memory::desc& scratchpad, const dnnl::memory::desc& from,
                 const void* src, const dnnl::memory::desc& to, void* dst);

dnnl::primitive_attr user_scratchpad();

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
};

// Plans (primitives with their descriptions) by key: thread-safe, least recently used leaves first. A plan in use stays
// alive through its shared_ptr. Making one takes milliseconds and happens outside the lock.
class RUNNEL_API PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

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

  const size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;  // most recently used first
  std::unordered_map<PlanKey, Entries::iterator, Hash> index_;
};

PlanCache& plan_cache();

}  // namespace runnel::cpu
