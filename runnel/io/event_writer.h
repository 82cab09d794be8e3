#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

struct EventWriterOptions {
  int64_t max_queue = 10;            // with more events than this waiting, they are written
  int64_t flush_millis = 120'000;    // none waits longer
  std::string filename_suffix = {};  // at the end of the file's name
  // The file cannot be made or written (a full disk): one warning, and later events are dropped. Else every later call
  // throws.
  bool keep_going = false;
};

// Writes one event file: events.out.tfevents.<seconds>.<host>.<process>.<number><suffix>. A call only puts the event
// into a queue; a thread of the writer's own writes. Safe from many threads; several writers and processes may write
// into one folder, each its own file. What was flushed survives a crash of the program. In a child made by fork it is
// of no use: writing and flushing are Errors there, and closing does nothing.
class RUNNEL_API EventWriter {
 public:
  // Makes the folder. The file is there, with its first event, when this returns.
  explicit EventWriter(const std::string& logdir, const EventWriterOptions& options = {}, Env& env = Env::posix(),
                       SourceSite where = SourceSite::current());
  // Closes, and then can only warn of a failure: call close() first.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // A whole event, serialized. False where it is dropped.
  bool write(std::string_view event, SourceSite where = SourceSite::current());
  // A summary of one tensor, now: a TensorProto and a SummaryMetadata, both serialized.
  bool write_tensor(int64_t step, std::string_view tag, std::string_view tensor, std::string_view metadata,
                    SourceSite where = SourceSite::current());

  // Within a second all that was given so far is written. Does not wait.
  void schedule_flush();
  // Returns once all that was given so far is with the system.
  void flush(SourceSite where = SourceSite::current());
  // Returns once the file is whole. A second call does nothing but wait for the first.
  void close(SourceSite where = SourceSite::current());

  const std::string& path() const;
  bool is_open() const;
  bool has_failed() const;                                            // with keep_going: what is written is dropped
  void require_open(SourceSite where = SourceSite::current()) const;  // an Error once it is closed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runnel::io
