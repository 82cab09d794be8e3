#include "runnel/base/profile.h"

#include <cpuid.h>
#include <pthread.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/machine_peak.h"
#include "runnel/base/profile_lane.h"

namespace runnel::profile {

void start_if_asked();  // summary/profiler.cpp: what RUNNEL_PROFILE says

constinit std::atomic<uint64_t> detail::state{detail::kUnasked};

namespace {

// What threads may write down, some 100 bytes for an event of an op; what does not fit is lost.
constexpr int64_t kMostBytes = int64_t{128} << 20;

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The counter of the CPU takes a third of the time that the clock takes, and two readings are half of what an event
// costs. It serves where it runs evenly, whatever the CPU does.
bool has_even_counter() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
}
const bool reads_counter = has_even_counter();

struct RecordingUnderWay {
  uint64_t number = 0;
  std::shared_ptr<LaneBudget> budget = std::make_shared<LaneBudget>(kMostBytes);
  std::vector<std::shared_ptr<Lane>> lanes;
  int64_t started_ticks = 0, started_ns = 0, started_unix_ns = 0;
};

// Never destroyed: threads may have events while static objects go.
struct Recordings {
  std::mutex mutex;
  uint64_t last = 0;
  std::unique_ptr<RecordingUnderWay> now;
};
Recordings& recordings() {
  static auto* const all = new Recordings;
  return *all;
}

// A child has none of its parent's threads and nothing of its recording.
void forget_in_child() {
  recordings().now.reset();
  if (detail::state.load(std::memory_order_relaxed) != detail::kUnasked) {
    detail::state.store(0, std::memory_order_relaxed);
  }
  recordings().mutex.unlock();
}

constinit thread_local const char* thread_role = nullptr;
constinit thread_local int thread_number = -1;

Thread this_thread() {
  const pid_t id = ::gettid();
  std::string name = id == ::getpid() ? "main" : "thread";
  if (thread_role) name = thread_number < 0 ? thread_role : fmt::format("{} {}", thread_role, thread_number);
  return {.id = static_cast<uint32_t>(id), .name = std::move(name)};
}

// That of the latest recording in which the thread had an event.
constinit thread_local Lane* my_lane = nullptr;
constinit thread_local bool thread_ends = false;

struct LaneOwner {
  std::shared_ptr<Lane> lane;
  ~LaneOwner() {
    my_lane = nullptr;
    thread_ends = true;
  }
};

Lane* open_lane() noexcept {
  if (thread_ends) return nullptr;
  try {
    static thread_local LaneOwner owner;
    const std::lock_guard lock(recordings().mutex);
    RecordingUnderWay* now = recordings().now.get();
    if (!now) return nullptr;
    now->lanes.push_back(std::make_shared<Lane>(now->number, now->budget, this_thread()));
    owner.lane = now->lanes.back();
    my_lane = owner.lane.get();
    return my_lane;
  } catch (const std::exception&) {  // no memory: the profile of this thread is not worth the program
    return nullptr;
  }
}

Lane* lane_of_recording() noexcept {
  const uint64_t now = current_recording();
  if (now == 0) return nullptr;
  return my_lane != nullptr && my_lane->recording() == now ? my_lane : open_lane();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// From ticks to nanoseconds since the start.
class TickScale {
 public:
  TickScale(const RecordingUnderWay& of, int64_t stopped_ticks, int64_t stopped_ns)
      : from_(of.started_ticks), length_(stopped_ns - of.started_ns) {
    if (stopped_ticks > from_) per_tick_ = static_cast<double>(length_) / static_cast<double>(stopped_ticks - from_);
  }
  int64_t length() const { return length_; }
  // What began before or ends later has the part that was recorded.
  int64_t ns(int64_t ticks) const {
    return std::clamp(static_cast<int64_t>(static_cast<double>(ticks - from_) * per_tick_), int64_t{0}, length_);
  }

 private:
  int64_t from_, length_;
  double per_tick_ = 1;
};

// Samples are of the innermost event around them, which is written down first.
class SamplesOfLane {
 public:
  explicit SamplesOfLane(std::vector<MemorySample>& all) : all_(all) {}
  void add(MemorySample sample) {
    waiting_.push_back(all_.size());
    all_.push_back(std::move(sample));
  }
  void give_to(const Event& event) {
    const bool works = event.kind != Kind::step && event.kind != Kind::user && event.kind != Kind::input_wait;
    while (works && !waiting_.empty() && all_[waiting_.back()].at_ns >= event.begin_ns) {
      all_[waiting_.back()].op = event.name;
      waiting_.pop_back();
    }
  }

 private:
  std::vector<MemorySample>& all_;
  std::vector<size_t> waiting_;
};

void read_lane(const Lane& lane, const TickScale& scale, Recording& into) {
  const auto thread = static_cast<uint32_t>(into.threads.size());
  into.threads.push_back(lane.thread());
  into.lost += lane.lost();
  SamplesOfLane samples(into.memory);
  lane.read([&](const RecordHead& head, std::string_view name, std::string_view payload) {
    if (head.what == RecordHead::What::memory) {
      return samples.add({.at_ns = scale.ns(head.begin_ticks), .live_bytes = head.bytes, .op = ""});
    }
    Event event{.name = std::string(name),
                .op_type = "",
                .kind = head.kind,
                .thread = thread,
                .begin_ns = scale.ns(head.begin_ticks),
                .end_ns = scale.ns(head.end_ticks),
                .step = head.step,
                .bytes = head.bytes,
                .flops = head.flops,
                .detail = ""};
    if (head.reader) {
      head.reader(head.subject, payload, event);
    } else {
      event.detail = payload;
    }
    samples.give_to(event);
    into.events.push_back(std::move(event));
  });
}

RecordHead head_of(const RawEvent& event, size_t payload_size) {
  return {.begin_ticks = event.begin_ticks,
          .end_ticks = event.end_ticks,
          .step = event.step,
          .bytes = event.bytes,
          .flops = event.flops,
          .reader = event.reader,
          .subject = event.subject,
          .name_size = static_cast<uint32_t>(event.name.size()),
          .payload_size = static_cast<uint32_t>(payload_size),
          .kind = event.kind,
          .what = RecordHead::What::event};
}

}  // namespace

int64_t now_ticks() { return reads_counter ? static_cast<int64_t>(__rdtsc()) : steady_ns(); }

uint64_t current_recording() {
  uint64_t now = detail::state.load(std::memory_order_relaxed);
  // Whoever asks says that nothing is recorded before: events of what the answer takes are nobody's.
  if (now == detail::kUnasked && detail::state.compare_exchange_strong(now, 0)) start_if_asked();
  return detail::state.load(std::memory_order_relaxed);
}

void start() {
  current_recording();
  machine_peak();  // measured once, while nothing is recorded
  static const int hooked =
      ::pthread_atfork([] { recordings().mutex.lock(); }, [] { recordings().mutex.unlock(); }, forget_in_child);
  static_cast<void>(hooked);
  auto made = std::make_unique<RecordingUnderWay>();
  const std::lock_guard lock(recordings().mutex);
  if (recordings().now) {
    throw make_error(Code::already_exists,
                     "[profiler] another profile is being recorded: stop it before this one is started");
  }
  made->number = ++recordings().last;
  made->started_unix_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  made->started_ns = steady_ns();
  made->started_ticks = now_ticks();
  const uint64_t number = made->number;
  recordings().now = std::move(made);
  detail::state.store(number, std::memory_order_relaxed);
}

Recording stop() {
  std::unique_ptr<RecordingUnderWay> stopped;
  {
    const std::lock_guard lock(recordings().mutex);
    stopped = std::move(recordings().now);
    if (stopped) detail::state.store(0, std::memory_order_relaxed);
  }
  if (!stopped) {
    throw make_error(Code::unavailable, "[profiler] no profile is being recorded: start one before it is stopped");
  }
  const int64_t stopped_ticks = now_ticks();
  const TickScale scale(*stopped, stopped_ticks, steady_ns());
  Recording recording;
  recording.host = host_name();
  recording.started_unix_ns = stopped->started_unix_ns;
  recording.length_ns = scale.length();
  recording.peak = machine_peak();
  for (const auto& lane : stopped->lanes) read_lane(*lane, scale, recording);
  std::stable_sort(recording.events.begin(), recording.events.end(), [](const Event& a, const Event& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  std::stable_sort(recording.memory.begin(), recording.memory.end(),
                   [](const MemorySample& a, const MemorySample& b) { return a.at_ns < b.at_ns; });
  return recording;
}

char* begin_put(const RawEvent& event, size_t payload_size) noexcept {
  Lane* const lane = lane_of_recording();
  return lane ? lane->begin(head_of(event, payload_size), event.name) : nullptr;
}

void end_put() noexcept { my_lane->publish(); }

void put(const RawEvent& event) noexcept {
  char* const payload = begin_put(event, event.payload.size());
  if (!payload) return;
  std::copy(event.payload.begin(), event.payload.end(), payload);
  end_put();
}

void sample_memory(int64_t live_bytes) noexcept {
  Lane* const lane = lane_of_recording();
  if (!lane) return;
  const int64_t now = now_ticks();
  const RecordHead head{.begin_ticks = now,
                        .end_ticks = now,
                        .step = -1,
                        .bytes = live_bytes,
                        .flops = 0,
                        .reader = nullptr,
                        .subject = nullptr,
                        .name_size = 0,
                        .payload_size = 0,
                        .kind = Kind::op,
                        .what = RecordHead::What::memory};
  if (lane->begin(head, {})) lane->publish();
}

void Span::open(Kind kind, std::string_view name, int64_t step) {
  const uint64_t now = current_recording();
  if (now == 0) return;
  open_ = {.recording = now, .event = {.kind = kind, .step = step, .name = name}, .detail = ""};
  open_->event.begin_ticks = now_ticks();
}

void Span::close() noexcept {
  if (open_->recording != current_recording()) return;
  open_->event.end_ticks = now_ticks();
  open_->event.payload = open_->detail;
  put(open_->event);
}

ThreadName::ThreadName(const char* role, int number)
    : outer_role_(std::exchange(thread_role, role)), outer_number_(std::exchange(thread_number, number)) {}
ThreadName::~ThreadName() {
  thread_role = outer_role_;
  thread_number = outer_number_;
}

}  // namespace runnel::profile
