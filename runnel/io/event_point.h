#pragma once

#include <string_view>
#include <vector>

#include "runnel/io/event.h"

namespace runnel::io {

// What one event says under one tag: a value of its summary, or a graph or metadata of a run, which stand beside
// summaries, under the tag that TensorBoard shows them by.
struct EventPoint {
  std::string_view tag;
  const Event& event;
  const EventValue* value = nullptr;  // null: not of a summary
  std::string_view bytes;             // then: those
};

// Calls take(point) for each; false where the event is damaged. What metadata says is not looked at.
RUNNEL_API bool visit_event_points(const Event& event, FunctionRef<void(const EventPoint&)> take);

// The plugin that shows the point; only the first of a tag must say it.
RUNNEL_API std::string_view plugin_of(const EventPoint& point);

// The buckets of a histogram of TensorFlow 1 as TensorBoard shows them, rows of (left, right, count): empty ones at
// both ends left out, and the smallest and largest value in the place of the outermost limits.
RUNNEL_API std::vector<double> histogram_rows(const EventHistogram& histogram);

}  // namespace runnel::io
