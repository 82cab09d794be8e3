#include "runnel/io/event.h"

#include <bit>
#include <chrono>

#include "runnel/base/varint.h"
#include "runnel/io/wire.h"

namespace runnel::io {
namespace {

using wire::Cursor;
using wire::tag;

constexpr std::string_view kFileVersion = "brain.Event:2";
constexpr std::string_view kSourceWriter = "tensorflow.core.util.events_writer";  // what readers know

// Walks over the fields of a message: take(tag, cursor) reads the field and says 1, says 0 when it does not know it,
// -1 when it is damaged.
template <class Take>
bool walk_event_fields(std::string_view message, Take&& take) {
  Cursor c(message);
  while (!c.done()) {
    uint32_t t = 0;
    if (!c.tag(&t)) return false;
    const int read = take(t, c);
    if (read < 0) return false;
    if (read > 0) continue;
    Cursor behind = c;
    if (!behind.skip(t)) return false;
    c.p = behind.p;
  }
  return true;
}

int took(bool ok) { return ok ? 1 : -1; }

// Takes the next field where it is bytes with this tag. What nearly every message has is read so, in the order of its
// writer; the walk over the fields does the rest, and finds what is damaged.
[[gnu::always_inline]] inline bool next_bytes(Cursor& c, uint32_t t, std::string_view* out) {
  if (c.done() || static_cast<unsigned char>(*c.p) != t) return false;
  Cursor behind = c;
  ++behind.p;
  if (!behind.bytes(out)) return false;
  c.p = behind.p;
  return true;
}
std::string_view rest_of(const Cursor& c) { return {c.p, static_cast<size_t>(c.end - c.p)}; }

bool read_event_double(Cursor& c, double* out) {
  uint64_t bits = 0;
  const char* next = get_fixed64(c.p, c.end, &bits);
  if (next == nullptr) return false;
  c.p = next;
  *out = std::bit_cast<double>(bits);
  return true;
}
bool read_event_float(Cursor& c, float* out) {
  uint32_t bits = 0;
  const char* next = get_fixed32(c.p, c.end, &bits);
  if (next == nullptr) return false;
  c.p = next;
  *out = std::bit_cast<float>(bits);
  return true;
}
bool read_event_int(Cursor& c, int64_t* out) {
  uint64_t v = 0;
  if (!c.varint(&v)) return false;
  *out = static_cast<int64_t>(v);
  return true;
}

bool parse_plugin_data(std::string_view bytes, EventMetadata* m) {
  return walk_event_fields(bytes, [&](uint32_t t, Cursor& c) {
    if (t == tag(1, wire::kBytes)) return took(c.bytes(&m->plugin));
    if (t == tag(2, wire::kBytes)) return took(c.bytes(&m->plugin_content));
    return 0;
  });
}

// Not exported, so that it is a part of the walk over the values.
bool read_event_value(std::string_view bytes, EventValue* value) {
  Cursor at(bytes);
  next_bytes(at, tag(1, wire::kBytes), &value->tag);
  if (next_bytes(at, tag(8, wire::kBytes), &value->body)) value->kind = ValueKind::tensor;
  next_bytes(at, tag(9, wire::kBytes), &value->metadata);
  return walk_event_fields(rest_of(at), [&](uint32_t t, Cursor& c) {
    switch (t) {
      case tag(1, wire::kBytes): return took(c.bytes(&value->tag));
      case tag(7, wire::kBytes): return took(c.bytes(&value->node_name));
      case tag(9, wire::kBytes): return took(c.bytes(&value->metadata));
      case tag(2, wire::kFixed32):
        value->kind = ValueKind::simple_value;
        return took(read_event_float(c, &value->simple_value));
      case tag(3, wire::kBytes):
      case tag(4, wire::kBytes):
      case tag(5, wire::kBytes):
      case tag(6, wire::kBytes):
      case tag(8, wire::kBytes): value->kind = static_cast<ValueKind>(t >> 3); return took(c.bytes(&value->body));
      default: return 0;
    }
  });
}

char* put_bytes(char* p, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());
  return p + bytes.size();
}
char* put_field(char* p, uint32_t field, std::string_view bytes) {
  *p++ = static_cast<char>(tag(field, wire::kBytes));
  return put_bytes(put_varint(p, bytes.size()), bytes);
}
size_t event_field_size(size_t bytes) { return 1 + varint_size(bytes) + bytes; }

constexpr size_t kMostTimeAndStep = 1 + sizeof(double) + 1 + kMaxVarintBytes;
char* put_time_and_step(char* p, double wall_time, int64_t step) {
  *p++ = static_cast<char>(tag(1, wire::kFixed64));
  store_fixed64(p, std::bit_cast<uint64_t>(wall_time));
  p += sizeof(double);
  if (step != 0) {
    *p++ = static_cast<char>(tag(2, wire::kVarint));
    p = put_varint(p, static_cast<uint64_t>(step));
  }
  return p;
}

}  // namespace

const char* event_kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::none: return "none";
    case EventKind::file_version: return "file_version";
    case EventKind::graph_def: return "graph_def";
    case EventKind::summary: return "summary";
    case EventKind::log_message: return "log_message";
    case EventKind::session_log: return "session_log";
    case EventKind::tagged_run_metadata: return "tagged_run_metadata";
    case EventKind::meta_graph_def: return "meta_graph_def";
  }
  return "none";
}

bool parse_event(std::string_view record, Event* event) {
  *event = {};
  std::string_view rest = record;
  // Writers begin with the time and the step: the walk goes on behind them. It gets a view, not the cursor: reading
  // that back from memory costs more than the two fields.
  constexpr size_t time_field = 1 + sizeof(double);
  if (rest.size() > time_field && rest[0] == tag(1, wire::kFixed64)) {
    event->wall_time = std::bit_cast<double>(load_fixed64(rest.data() + 1));
    rest.remove_prefix(time_field);
    if (rest[0] == tag(2, wire::kVarint)) {
      uint64_t step = 0;
      const char* const behind = get_varint(rest.data() + 1, rest.data() + rest.size(), &step);
      if (behind == nullptr) return false;
      event->step = static_cast<int64_t>(step);
      rest.remove_prefix(static_cast<size_t>(behind - rest.data()));
    }
  }
  Cursor at(rest);
  if (next_bytes(at, tag(static_cast<uint32_t>(EventKind::summary), wire::kBytes), &event->body)) {
    event->kind = EventKind::summary;
  }
  return walk_event_fields(rest_of(at), [&](uint32_t t, Cursor& c) {
    if (t == tag(1, wire::kFixed64)) return took(read_event_double(c, &event->wall_time));
    if (t == tag(2, wire::kVarint)) return took(read_event_int(c, &event->step));
    const uint32_t field = t >> 3;
    if ((t & 7) == wire::kBytes && field >= 3 && field <= 9) {
      event->kind = static_cast<EventKind>(field);
      return took(c.bytes(&event->body));
    }
    std::string_view source;
    if (t == tag(10, wire::kBytes)) {
      return took(c.bytes(&source) && walk_event_fields(source, [&](uint32_t inner, Cursor& s) {
                    return inner == tag(1, wire::kBytes) ? took(s.bytes(&event->source_writer)) : 0;
                  }));
    }
    return 0;
  });
}

bool parse_event_value(std::string_view bytes, EventValue* value) { return read_event_value(bytes, value); }

bool parse_event_metadata(std::string_view bytes, EventMetadata* metadata) {
  return walk_event_fields(bytes, [&](uint32_t t, Cursor& c) {
    std::string_view data;
    if (t == tag(1, wire::kBytes)) return took(c.bytes(&data) && parse_plugin_data(data, metadata));
    if (t == tag(2, wire::kBytes)) return took(c.bytes(&metadata->display_name));
    if (t == tag(3, wire::kBytes)) return took(c.bytes(&metadata->description));
    if (t == tag(4, wire::kVarint)) return took(read_event_int(c, &metadata->data_class));
    return 0;
  });
}

bool visit_event_values(std::string_view summary, FunctionRef<void(const EventValue&)> take) {
  bool values_ok = true;
  const bool whole = wire::read_bytes(summary, [&](std::string_view bytes) {
    EventValue value;
    values_ok = values_ok && read_event_value(bytes, &value);
    if (values_ok) take(value);
  });
  return whole && values_ok;
}

std::string_view plugin_of(const EventValue& value) {
  switch (value.kind) {
    case ValueKind::simple_value: return "scalars";
    case ValueKind::histogram: return "histograms";
    case ValueKind::image: return "images";
    case ValueKind::audio: return "audio";
    default: break;
  }
  // Most metadata has the name and nothing else: {plugin_data 1 {plugin_name 1}}.
  const std::string_view m = value.metadata;
  constexpr size_t head = 4, one_byte = 127;  // two tags, two lengths
  if (m.size() > head && m.size() <= one_byte && m[0] == tag(1, wire::kBytes) && m[2] == tag(1, wire::kBytes) &&
      static_cast<size_t>(m[1]) == m.size() - 2 && static_cast<size_t>(m[3]) == m.size() - head) {
    return m.substr(head);
  }
  EventMetadata metadata;
  return parse_event_metadata(m, &metadata) ? metadata.plugin : std::string_view();
}

bool parse_event_image(std::string_view bytes, EventImage* image) {
  return walk_event_fields(bytes, [&](uint32_t t, Cursor& c) {
    if (t == tag(1, wire::kVarint)) return took(read_event_int(c, &image->height));
    if (t == tag(2, wire::kVarint)) return took(read_event_int(c, &image->width));
    if (t == tag(3, wire::kVarint)) return took(read_event_int(c, &image->colorspace));
    if (t == tag(4, wire::kBytes)) return took(c.bytes(&image->encoded));
    return 0;
  });
}

bool parse_event_audio(std::string_view bytes, EventAudio* audio) {
  return walk_event_fields(bytes, [&](uint32_t t, Cursor& c) {
    if (t == tag(1, wire::kFixed32)) return took(read_event_float(c, &audio->sample_rate));
    if (t == tag(2, wire::kVarint)) return took(read_event_int(c, &audio->channels));
    if (t == tag(3, wire::kVarint)) return took(read_event_int(c, &audio->frames));
    if (t == tag(4, wire::kBytes)) return took(c.bytes(&audio->encoded));
    if (t == tag(5, wire::kBytes)) return took(c.bytes(&audio->content_type));
    return 0;
  });
}

bool parse_event_histogram(std::string_view bytes, EventHistogram* histogram) {
  double* const numbers[] = {&histogram->min, &histogram->max, &histogram->num, &histogram->sum,
                             &histogram->sum_squares};
  const bool ok = walk_event_fields(bytes, [&](uint32_t t, Cursor& c) {
    const uint32_t field = t >> 3;
    if ((t & 7) == wire::kFixed64 && field >= 1 && field <= 5) return took(read_event_double(c, numbers[field - 1]));
    if (t == tag(6, wire::kBytes)) return took(c.bytes(&histogram->limits));
    if (t == tag(7, wire::kBytes)) return took(c.bytes(&histogram->counts));
    return 0;
  });
  return ok && histogram->limits.size() == histogram->counts.size() && histogram->limits.size() % sizeof(double) == 0;
}

bool parse_event_run_metadata(std::string_view bytes, EventRunMetadata* metadata) {
  return walk_event_fields(bytes, [&](uint32_t t, Cursor& c) {
    if (t == tag(1, wire::kBytes)) return took(c.bytes(&metadata->tag));
    if (t == tag(2, wire::kBytes)) return took(c.bytes(&metadata->run_metadata));
    return 0;
  });
}

double event_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) / 1e6;
}

void append_event(std::string& out, double wall_time, int64_t step, EventKind kind, std::string_view body) {
  char head[kMostTimeAndStep];
  out.append(head, static_cast<size_t>(put_time_and_step(head, wall_time, step) - head));
  if (kind != EventKind::none) append_field(out, static_cast<uint32_t>(kind), body);
}

void append_tensor_event(std::string& out, double wall_time, int64_t step, std::string_view tag_text,
                         std::string_view tensor, std::string_view metadata) {
  const size_t meta = metadata.empty() ? 0 : event_field_size(metadata.size());
  const size_t value = event_field_size(tag_text.size()) + event_field_size(tensor.size()) + meta;
  const size_t summary = event_field_size(value);
  const size_t before = out.size();
  // One look at the string's size: there are millions of scalars.
  out.resize(before + kMostTimeAndStep + event_field_size(summary));
  char* p = put_time_and_step(out.data() + before, wall_time, step);
  *p++ = static_cast<char>(tag(static_cast<uint32_t>(EventKind::summary), wire::kBytes));
  p = put_varint(p, summary);
  *p++ = static_cast<char>(tag(1, wire::kBytes));
  p = put_varint(p, value);
  p = put_field(p, 1, tag_text);
  p = put_field(p, 8, tensor);
  if (!metadata.empty()) p = put_field(p, 9, metadata);
  out.resize(static_cast<size_t>(p - out.data()));
}

void append_version_event(std::string& out, double wall_time) {
  std::string source;
  append_field(source, 1, kSourceWriter);
  append_event(out, wall_time, 0, EventKind::file_version, kFileVersion);
  append_field(out, 10, source);
}

void append_field(std::string& out, uint32_t field, std::string_view bytes) {
  append_varint(out, tag(field, wire::kBytes));
  append_varint(out, bytes.size());
  out += bytes;
}
void append_field(std::string& out, uint32_t field, double number) {
  append_varint(out, tag(field, wire::kFixed64));
  append_fixed64(out, std::bit_cast<uint64_t>(number));
}
void append_field(std::string& out, uint32_t field, float number) {
  append_varint(out, tag(field, wire::kFixed32));
  append_fixed32(out, std::bit_cast<uint32_t>(number));
}
void append_varint_field(std::string& out, uint32_t field, uint64_t number) {
  append_varint(out, tag(field, wire::kVarint));
  append_varint(out, number);
}

}  // namespace runnel::io
