#include "runnel/io/profile_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"

namespace runnel::io {

namespace {
constexpr int64_t kLongestProfile = 100'000'000'000'000;     // of a recording: more than a day, in nanoseconds
constexpr int64_t kLatestStart = 9'000'000'000'000'000'000;  // start: the year 2255
}  // namespace

// Names of a few hundred characters for events of a few bytes are usual.
ProfileBuilder::ProfileBuilder(std::string path, uint64_t file_bytes)
    : path_(std::move(path)), text_left_((uint64_t{64} << 20) + file_bytes * 64) {}

void ProfileBuilder::fail(uint64_t offset, const std::string& what) const {
  throw Error(Code::data_loss, fmt::format("[profile] {}: at byte {}: {}", path_, offset, what),
              {file_frame(path_, offset)});
}

void ProfileBuilder::count_text(uint64_t bytes, uint64_t offset) {
  if (bytes > text_left_) {
    throw Error(Code::resource_exhausted,
                fmt::format("[profile] {}: at byte {}: the names of the events are too long for a file of its size",
                            path_, offset),
                {file_frame(path_, offset)});
  }
  text_left_ -= bytes;
}

void ProfileBuilder::add(profile::Event event, const ProfileMarks& marks, uint64_t offset) {
  if (event.end_ns < event.begin_ns) {
    fail(offset, fmt::format("the event '{}' ends before it begins", event.name.substr(0, 100)));
  }
  count_text(event.name.size() + event.op_type.size() + event.detail.size(), offset);
  if (marks.group >= 0 || marks.linked()) marked_.push_back({events_.size(), marks});
  events_.push_back(std::move(event));
}

void ProfileBuilder::begin_at_first(profile::Recording* recording) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const profile::Event& event : events_) first = std::min(first, event.begin_ns);
  for (const profile::MemorySample& sample : recording->memory) first = std::min(first, sample.at_ns);
  const int64_t shift = first > kLongestProfile && first != std::numeric_limits<int64_t>::max() ? first : 0;
  if (recording->started_unix_ns <= 0) recording->started_unix_ns = shift;
  recording->started_unix_ns = std::min(recording->started_unix_ns, kLatestStart);
  recording->length_ns = std::clamp<int64_t>(recording->length_ns, 0, kLongestProfile);
  const auto take = [&](int64_t end_ns, const std::string& name) {
    if (end_ns > kLongestProfile) {
      throw Error(
          Code::data_loss,
          fmt::format("[profile] {}: '{}' ends more than a day after the first event", path_, name.substr(0, 100)),
          {{.kind = ErrorFrame::Kind::file, .name = path_}});
    }
    recording->length_ns = std::max(recording->length_ns, end_ns);
  };
  for (profile::Event& event : events_) {
    event.begin_ns -= shift;
    event.end_ns -= shift;
    take(event.end_ns, event.name);
  }
  for (profile::MemorySample& sample : recording->memory) {
    sample.at_ns -= shift;
    take(sample.at_ns, sample.op);
  }
  std::stable_sort(recording->memory.begin(), recording->memory.end(),
                   [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
}

void ProfileBuilder::take_steps_of_groups() {
  std::unordered_map<int64_t, int64_t> step_of_group;
  for (const Marked& m : marked_) {
    if (m.marks.group >= 0 && events_[m.event].kind == profile::Kind::step) {
      step_of_group.try_emplace(m.marks.group, events_[m.event].step);
    }
  }
  for (const Marked& m : marked_) {
    profile::Event& event = events_[m.event];
    const auto at = step_of_group.find(m.marks.group);
    if (event.step < 0 && m.marks.group >= 0 && at != step_of_group.end()) event.step = at->second;
  }
}

// The events stand in order of begin.
void ProfileBuilder::take_steps_from_around() {
  struct Cover {
    int64_t end = -1, step = -1;
  };
  std::unordered_map<uint32_t, Cover> covers;
  for (size_t i = 0; i < events_.size(); ++i) {
    profile::Event& event = events_[i];
    Cover& cover = covers[event.thread];
    if (event.step < 0 && event.begin_ns < cover.end && event.end_ns <= cover.end) {
      event.step = cover.step;
    }
    if (covers_[i] && event.step >= 0) cover = {event.end_ns, event.step};
  }
}

bool ProfileBuilder::take_steps_through_links() {
  std::map<std::pair<int64_t, int64_t>, int64_t> given;
  for (const Marked& m : marked_) {
    if (m.marks.gives_type >= 0 && events_[m.event].step >= 0) {
      given.try_emplace({m.marks.gives_type, m.marks.gives_id}, events_[m.event].step);
    }
  }
  bool changed = false;
  for (const Marked& m : marked_) {
    profile::Event& event = events_[m.event];
    if (m.marks.takes_type < 0 || event.step >= 0) continue;
    const auto at = given.find({m.marks.takes_type, m.marks.takes_id});
    if (at == given.end()) continue;
    event.step = at->second;
    covers_[m.event] = true;
    changed = true;
  }
  return changed;
}

void ProfileBuilder::finish(profile::Recording* recording, bool find_steps) {
  begin_at_first(recording);
  std::vector<size_t> order(events_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(events_[a].begin_ns, events_[b].end_ns) < std::tie(events_[b].begin_ns, events_[a].end_ns);
  });
  std::vector<size_t> place(order.size());
  std::vector<profile::Event> sorted;
  sorted.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(events_[order[i]]));
  }
  events_ = std::move(sorted);
  for (Marked& m : marked_) m.event = place[m.event];

  if (find_steps) {
    covers_.assign(events_.size(), false);
    for (size_t i = 0; i < events_.size(); ++i) covers_[i] = events_[i].kind == profile::Kind::step;
    take_steps_of_groups();
    take_steps_from_around();
    constexpr int most_threads_in_a_row = 8;
    for (int i = 0; i < most_threads_in_a_row && take_steps_through_links(); ++i) take_steps_from_around();
  }
  recording->events = std::move(events_);
}

}  // namespace runnel::io
