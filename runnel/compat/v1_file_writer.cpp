// FileWriter: what a session fetched, as events.
#include <mutex>
#include <set>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/compat/v1_summary.h"
#include "runnel/io/event.h"
#include "runnel/io/event_writer.h"
#include "runnel/io/wire.h"
#include "runnel/op/composed.h"

namespace runnel::compat::v1::summary {
namespace {

using io::append_field;

constexpr uint32_t kMetadataField = 9;

// A value of a Summary without its metadata. It was parsed before, so it is whole.
std::string without_metadata(std::string_view value) {
  std::string rest;
  io::wire::Cursor c(value);
  while (!c.done()) {
    const char* const begin = c.p;
    uint32_t tag = 0;
    if (!c.tag(&tag) || !c.skip(tag)) break;
    if (tag >> 3 != kMetadataField) rest.append(begin, c.p);
  }
  return rest;
}

// {graph_def 2, collection_def 4: name -> {node_list 1: the names of tensors}}
std::string meta_graph_of(const Graph& graph, const std::string& graph_def) {
  const auto scope = graph.as_default();
  const GraphState& state = current_state("FileWriter");
  std::string meta;
  append_field(meta, 2, std::string_view(graph_def));
  for (const auto& [name, tensors] : state.collections) {
    std::string names, definition, entry;
    for (const Tensor& t : tensors) {
      const NodeOutput output = state.output_of(t);
      append_field(names, 1, std::string_view(fmt::format("{}:{}", output.node->name, output.index)));
    }
    append_field(definition, 1, std::string_view(names));
    append_field(entry, 1, std::string_view(name));
    append_field(entry, 2, std::string_view(definition));
    append_field(meta, 4, std::string_view(entry));
  }
  return meta;
}

}  // namespace

struct FileWriter::State {
  std::string logdir;
  FileWriterOptions options;
  std::mutex mutex;
  std::unique_ptr<io::EventWriter> events;  // null: closed
  bool told_closed = false;
  std::set<std::string, std::less<>> seen_tags;  // whose metadata is in a file
  std::set<std::string> run_tags;

  void open() {
    events = std::make_unique<io::EventWriter>(
        logdir,
        io::EventWriterOptions{.max_queue = options.max_queue,
                               .flush_millis = static_cast<int64_t>(options.flush_secs * 1000),
                               .filename_suffix = options.filename_suffix},
        Env::posix(), SourceSite());
    told_closed = false;
  }

  // The writer; null, with a warning, once it is closed.
  io::EventWriter* taking() {
    if (!events && !std::exchange(told_closed, true)) {
      log_warning("[FileWriter] the writer of {} is closed: what it is given is dropped until reopen()", logdir);
    }
    return events.get();
  }

  void write(int64_t step, io::EventKind kind, std::string_view body) {
    io::EventWriter* const to = taking();
    if (!to) return;
    std::string event;
    io::append_event(event, io::event_time(), step, kind, body);
    to->write(event, SourceSite());
  }

  // The summary as it is written: only the first value of a tag tells what its plugin is to know.
  std::string with_new_metadata(std::string_view summary) {
    std::string written;
    const auto refuse = [&] {
      throw invalid_argument("[FileWriter::add_summary] the {} bytes are no Summary message", summary.size());
    };
    const bool whole = io::wire::read_bytes(summary, [&](std::string_view bytes) {
      io::EventValue value;
      if (!io::parse_event_value(bytes, &value)) refuse();
      const bool first = seen_tags.emplace(value.tag).second;
      append_field(written, 1, first ? bytes : std::string_view(without_metadata(bytes)));
    });
    if (!whole) refuse();
    return written;
  }
};

FileWriter::FileWriter(const std::string& logdir, const FileWriterOptions& options, SourceSite where)
    : state_(std::make_unique<State>()) {
  composed(where, [&] {
    if (executing_eagerly()) {
      throw make_error(Code::failed_precondition,
                       "[FileWriter] ops run eagerly here: use summary::create_file_writer, or keep a "
                       "Graph::as_default() open");
    }
    state_->logdir = logdir;
    state_->options = options;
    state_->open();
  });
}

FileWriter::FileWriter(const std::string& logdir, const Graph& graph, const FileWriterOptions& options,
                       SourceSite where)
    : FileWriter(logdir, options, where) {
  const std::string graph_def = graph.to_graph_def();
  add_graph_def(graph_def, 0, where);
  add_meta_graph(meta_graph_of(graph, graph_def), 0, where);
}

FileWriter::~FileWriter() = default;

void FileWriter::add_message(std::string_view summary, int64_t global_step, const SourceSite& where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    state_->write(global_step, io::EventKind::summary, state_->with_new_metadata(summary));
  });
}

void FileWriter::add_summary(const Tensor& summary, int64_t global_step, SourceSite where) {
  composed(where, [&] {
    if (!summary.defined() || summary.is_symbolic() || summary.dtype() != DType::string ||
        summary.num_elements() != 1) {
      throw invalid_argument("[FileWriter::add_summary] a Summary message is needed, as a session gives it, got {}",
                             summary.defined() ? summary.repr() : "nothing");
    }
    add_message(summary.to_host().data<Bytes>()->view(), global_step, SourceSite());
  });
}

void FileWriter::add_simple_values(const std::vector<SimpleValue>& values, int64_t global_step, SourceSite where) {
  std::string summary;
  for (const SimpleValue& each : values) {
    std::string value;
    append_field(value, 1, std::string_view(each.tag));
    append_field(value, 2, each.simple_value);
    append_field(summary, 1, std::string_view(value));
  }
  add_message(summary, global_step, where);
}

void FileWriter::add_event(std::string_view event, SourceSite where) {
  composed(where, [&] {
    io::Event parsed;
    if (!io::parse_event(event, &parsed)) {
      throw invalid_argument("[FileWriter::add_event] the {} bytes are no Event message", event.size());
    }
    const std::lock_guard lock(state_->mutex);
    if (io::EventWriter* const to = state_->taking()) to->write(event, SourceSite());
  });
}

void FileWriter::add_graph(const Graph& graph, int64_t global_step, SourceSite where) {
  composed(where, [&] { add_graph_def(graph.to_graph_def(), global_step, SourceSite()); });
}

void FileWriter::add_graph_def(std::string_view graph_def, int64_t global_step, SourceSite where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    state_->write(global_step, io::EventKind::graph_def, graph_def);
  });
}

void FileWriter::add_meta_graph(std::string_view meta_graph_def, int64_t global_step, SourceSite where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    state_->write(global_step, io::EventKind::meta_graph_def, meta_graph_def);
  });
}

void FileWriter::add_run_metadata(std::string_view run_metadata, const std::string& tag, int64_t global_step,
                                  SourceSite where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    if (!state_->run_tags.insert(tag).second) {
      throw invalid_argument("[FileWriter::add_run_metadata] the tag '{}' was already used for run metadata", tag);
    }
    std::string tagged;
    append_field(tagged, 1, std::string_view(tag));
    append_field(tagged, 2, run_metadata);
    state_->write(global_step, io::EventKind::tagged_run_metadata, tagged);
  });
}

void FileWriter::add_session_log(const SessionLog& log, int64_t global_step, SourceSite where) {
  std::string message;
  if (log.status != SessionLog::Status::unspecified) {
    io::append_varint_field(message, 1, static_cast<uint64_t>(log.status));
  }
  if (!log.checkpoint_path.empty()) append_field(message, 2, std::string_view(log.checkpoint_path));
  if (!log.msg.empty()) append_field(message, 3, std::string_view(log.msg));
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    state_->write(global_step, io::EventKind::session_log, message);
  });
}

void FileWriter::flush(SourceSite where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    if (io::EventWriter* const to = state_->taking()) to->flush(SourceSite());
  });
}

void FileWriter::close(SourceSite where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    if (!state_->events) return;
    const std::unique_ptr<io::EventWriter> last = std::move(state_->events);
    last->close(SourceSite());
  });
}

void FileWriter::reopen(SourceSite where) {
  composed(where, [&] {
    const std::lock_guard lock(state_->mutex);
    if (!state_->events) state_->open();
  });
}

const std::string& FileWriter::get_logdir() const { return state_->logdir; }

}  // namespace runnel::compat::v1::summary
