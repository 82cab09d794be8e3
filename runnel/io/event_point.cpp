#include "runnel/io/event_point.h"

#include <cstring>

namespace runnel::io {

bool visit_event_points(const Event& event, FunctionRef<void(const EventPoint&)> take) {
  switch (event.kind) {
    case EventKind::summary:
      return visit_event_values(
          event.body, [&](const EventValue& value) { take({.tag = value.tag, .event = event, .value = &value}); });
    case EventKind::graph_def: take({.tag = "__run_graph__", .event = event, .bytes = event.body}); return true;
    case EventKind::tagged_run_metadata: {
      EventRunMetadata run;
      if (!parse_event_run_metadata(event.body, &run)) return false;
      take({.tag = run.tag, .event = event, .bytes = run.run_metadata});
      return true;
    }
    default: return true;
  }
}

std::string_view plugin_of(const EventPoint& point) {
  if (point.value != nullptr) return plugin_of(*point.value);
  return point.event.kind == EventKind::graph_def ? "graphs" : "graph_tagged_run_metadata";
}

std::vector<double> histogram_rows(const EventHistogram& h) {
  const auto at = [](std::string_view packed, size_t i) {
    double v = 0;
    std::memcpy(&v, packed.data() + i * sizeof v, sizeof v);
    return v;
  };
  size_t begin = 0, end = h.buckets();
  while (begin < end && !(at(h.counts, begin) > 0)) ++begin;
  while (end > begin && !(at(h.counts, end - 1) > 0)) --end;
  std::vector<double> rows;
  rows.reserve(3 * (end - begin));
  for (size_t i = begin; i < end; ++i) {
    rows.push_back(i == begin ? h.min : at(h.limits, i - 1));
    rows.push_back(i + 1 == end ? h.max : at(h.limits, i));
    rows.push_back(at(h.counts, i));
  }
  return rows;
}

}  // namespace runnel::io
