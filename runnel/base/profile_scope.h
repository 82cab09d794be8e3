#pragma once

// Internal: how code of the library puts events into the recording of a profile. Where none is under way, each of these
// is a load and a branch.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runnel/base/profile.h"

namespace runnel::profile {

namespace detail {
// 0: nothing is recorded. Else the number of the recording under way, or kUnasked.
extern constinit std::atomic<uint64_t> state;
// Nobody has looked yet whether RUNNEL_PROFILE wants a recording; the first event does.
inline constexpr uint64_t kUnasked = ~uint64_t{0};
}  // namespace detail

inline bool recording() { return detail::state.load(std::memory_order_relaxed) != 0; }

// The number of the recording under way; 0: there is none.
RUNNEL_API uint64_t current_recording();

// A moment, in units of the clock that is cheapest to read.
RUNNEL_API int64_t now_ticks();

// Fills in what an event needs of its payload, once the recording has stopped. `subject` lives as long as the program.
using Reader = void (*)(const void* subject, std::string_view payload, Event& event);

// An event as threads write it down: nothing is looked up or put into words before the recording stops.
struct RawEvent {
  Kind kind = Kind::user;
  int64_t begin_ticks = 0;
  int64_t end_ticks = 0;
  int64_t step = -1;
  int64_t bytes = 0;
  double flops = 0;
  std::string_view name = {};
  std::string_view payload = {};  // without a reader: the detail
  Reader reader = nullptr;
  const void* subject = nullptr;
};
// Of the calling thread, which does not wait for others. An event for which there is no room counts as lost.
RUNNEL_API void put(const RawEvent& event) noexcept;

// For payloads that are written in place: room for so many bytes after the name, or null.
char* begin_put(const RawEvent& event, size_t payload_size) noexcept;
void end_put() noexcept;

// So many bytes of tensors live after an allocation or release by this thread. The op whose event is around gets it.
RUNNEL_API void sample_memory(int64_t live_bytes) noexcept;

// One event, from here to the end of the block; one that throws ends it too. A recording that began later or stops
// earlier has nothing of it. The name must stay where it is.
class Span {
 public:
  Span(Kind kind, std::string_view name, int64_t step = -1) {
    if (recording()) [[unlikely]]
      open(kind, name, step);
  }
  ~Span() {
    if (open_) [[unlikely]]
      close();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Is it being recorded? What follows is for those that are.
  explicit operator bool() const { return open_.has_value(); }
  void set_detail(std::string detail) { open_->detail = std::move(detail); }
  void add_bytes(int64_t bytes) { open_->event.bytes += bytes; }
  void add_flops(double flops) { open_->event.flops += flops; }

 private:
  void open(Kind kind, std::string_view name, int64_t step);
  void close() noexcept;

  struct Open {
    uint64_t recording;
    RawEvent event;
    std::string detail;
  };
  std::optional<Open> open_;
};

// What recordings call this thread while it lives: "pool 1". `role` must stay where it is. Threads without are "main"
// or "thread".
class RUNNEL_API ThreadName {
 public:
  explicit ThreadName(const char* role, int number = -1);
  ~ThreadName();
  ThreadName(const ThreadName&) = delete;
  ThreadName& operator=(const ThreadName&) = delete;

 private:
  const char* outer_role_;
  int outer_number_;
};

}  // namespace runnel::profile
