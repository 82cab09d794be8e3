#pragma once

// Events, the records of TensorBoard's event files: a time, a step and a summary, a graph or the like. Read as views
// into the record, written without generated code, for a training step pays for it. See docs/formats/events.md.
#include <cstdint>
#include <string>
#include <string_view>

#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"

namespace runnel::io {

// What an event holds; the numbers are TensorFlow's fields.
enum class EventKind : uint8_t {
  none = 0,
  file_version = 3,
  graph_def = 4,
  summary = 5,
  log_message = 6,
  session_log = 7,
  tagged_run_metadata = 8,
  meta_graph_def = 9,
};
RUNNEL_API const char* event_kind_name(EventKind kind);  // "file_version"

struct Event {
  double wall_time = 0;  // seconds since the Unix epoch
  int64_t step = 0;
  EventKind kind = EventKind::none;
  std::string_view body;           // the text or the message of that kind
  std::string_view source_writer;  // of a file_version: who wrote the file
};

// What a value of a summary holds; the numbers are TensorFlow's fields.
enum class ValueKind : uint8_t {
  none = 0,
  simple_value = 2,
  obsolete_histogram = 3,
  image = 4,
  histogram = 5,
  audio = 6,
  tensor = 8,
};

struct EventValue {
  std::string_view tag;
  std::string_view node_name;
  ValueKind kind = ValueKind::none;
  float simple_value = 0;
  std::string_view body;      // the message of other kinds; a TensorProto where the kind is tensor
  std::string_view metadata;  // a message; only the first value of a tag must have it
};

struct EventMetadata {
  std::string_view plugin;
  std::string_view plugin_content;
  std::string_view display_name;
  std::string_view description;
  int64_t data_class = 0;
};

// False where the bytes are no such message.
RUNNEL_API bool parse_event(std::string_view record, Event* event);
RUNNEL_API bool parse_event_value(std::string_view bytes, EventValue* value);
RUNNEL_API bool parse_event_metadata(std::string_view bytes, EventMetadata* metadata);

// Calls take(value) for each value of a summary; false where it is damaged.
RUNNEL_API bool visit_event_values(std::string_view summary, FunctionRef<void(const EventValue&)> take);

// The plugin that shows the value: what its metadata says (nothing where that is damaged), or what values of TensorFlow
// 1 are shown as.
RUNNEL_API std::string_view plugin_of(const EventValue& value);

// The parts of the messages that values of TensorFlow 1 hold.
struct EventImage {
  int64_t height = 0, width = 0, colorspace = 0;
  std::string_view encoded;
};
struct EventAudio {
  float sample_rate = 0;
  int64_t channels = 0, frames = 0;
  std::string_view encoded;
  std::string_view content_type;
};
struct EventHistogram {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::string_view limits, counts;  // packed float64, as many in each
  size_t buckets() const { return counts.size() / sizeof(double); }
};
struct EventRunMetadata {
  std::string_view tag;
  std::string_view run_metadata;
};
RUNNEL_API bool parse_event_image(std::string_view bytes, EventImage* image);
RUNNEL_API bool parse_event_audio(std::string_view bytes, EventAudio* audio);
RUNNEL_API bool parse_event_histogram(std::string_view bytes, EventHistogram* histogram);
RUNNEL_API bool parse_event_run_metadata(std::string_view bytes, EventRunMetadata* metadata);

// Now, as events say it.
RUNNEL_API double event_time();

// They append one event, in the order of fields in which TensorFlow writes them.
RUNNEL_API void append_event(std::string& out, double wall_time, int64_t step, EventKind kind, std::string_view body);
// A summary of one tensor: a TensorProto and a SummaryMetadata, both serialized.
RUNNEL_API void append_tensor_event(std::string& out, double wall_time, int64_t step, std::string_view tag,
                                    std::string_view tensor, std::string_view metadata);
// The first event of every file.
RUNNEL_API void append_version_event(std::string& out, double wall_time);

// They append one field of a message.
RUNNEL_API void append_field(std::string& out, uint32_t field, std::string_view bytes);
RUNNEL_API void append_field(std::string& out, uint32_t field, double number);
RUNNEL_API void append_field(std::string& out, uint32_t field, float number);
RUNNEL_API void append_varint_field(std::string& out, uint32_t field, uint64_t number);

}  // namespace runnel::io
