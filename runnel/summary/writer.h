#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "runnel/base/source_site.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/tensor.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::summary {

// The step of a summary: a number, a tensor or a variable (its value when the summary is written). Step() is the
// default of the thread.
class Step {
 public:
  Step() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Step(T step) : kind_(Kind::number), number_(static_cast<int64_t>(step)) {}         // NOLINT: implicit
  Step(Tensor step) : kind_(Kind::tensor), tensor_(std::move(step)) {}               // NOLINT
  Step(const Variable& step) : kind_(Kind::variable), tensor_(), variable_(step) {}  // NOLINT

  bool defined() const { return kind_ != Kind::none; }
  int64_t number() const;  // now; an Error of a tensor of a graph
  Tensor tensor() const;   // int64; an op where it is a variable

 private:
  enum class Kind : uint8_t { none, number, tensor, variable };
  Kind kind_ = Kind::none;
  int64_t number_ = 0;
  Tensor tensor_;
  Variable variable_;
};

// Whether summaries are recorded: a bool, a tensor, or a function that gives one and is asked for each summary.
class Condition {
 public:
  Condition(bool recorded) : fixed_(recorded) {}                                // NOLINT: implicit
  Condition(const Tensor& recorded) : ask_([recorded] { return recorded; }) {}  // NOLINT
  template <std::invocable F>
    requires(!std::convertible_to<F, Tensor>)
  Condition(F f) : ask_([f = std::move(f)] { return Tensor(f()); }) {}  // NOLINT
  bool is_fixed() const { return !ask_; }
  bool fixed() const { return fixed_; }
  Tensor ask() const { return ask_(); }

 private:
  bool fixed_ = true;
  std::function<Tensor()> ask_;
};

struct FileWriterOptions {
  int64_t max_queue = 10;          // with more events than this waiting, they are written
  int64_t flush_millis = 120'000;  // none waits longer
  std::string filename_suffix = ".v2";
  // A file that cannot be made or written (a full disk) is one warning, and what follows is dropped. Else it is an
  // Error here or of the next summary.
  bool keep_going = false;
};

class DefaultWriter;

// Where summaries go: a file, or nowhere. Copies are the same writer; the file is closed when the last one ends.
class RUNNEL_API SummaryWriter {
 public:
  SummaryWriter() = default;  // nowhere
  explicit SummaryWriter(Tensor handle) : handle_(std::move(handle)) {}

  // The thread's writer while the result lives (one that goes nowhere changes nothing); with a step, that is the
  // default then. When it ends, what was written is on its way to the disk within a second.
  //   const auto scope = writer.as_default();
  [[nodiscard]] DefaultWriter as_default(const Step& step = {}, SourceSite where = SourceSite::current()) const;
  // The same from now on.
  void set_as_default(const Step& step = {}, SourceSite where = SourceSite::current()) const;

  // Inside a function an op of its graph. A writer that is closed has nothing to flush; the op says that it is closed.
  void flush(SourceSite where = SourceSite::current()) const;
  void close(SourceSite where = SourceSite::current()) const;

  bool is_noop() const { return !handle_.defined(); }
  const Tensor& handle() const { return handle_; }
  const std::string& path() const;  // of the event file; an Error of one that goes nowhere

 private:
  Tensor handle_;
};

// A new event file in the folder, which is made. Inside a function it is made at once, while tracing.
RUNNEL_API SummaryWriter create_file_writer(const std::string& logdir, const FileWriterOptions& options = {},
                                            SourceSite where = SourceSite::current());
RUNNEL_API SummaryWriter create_noop_writer();

// What a thread keeps in mind for its summaries; the scopes below change it.
struct Defaults {
  SummaryWriter writer;
  Step own_step;
  Step* step = &own_step;  // that of a scope around, where this one brought none
  std::optional<Condition> condition = {};
};

class RUNNEL_API DefaultWriter {
 public:
  DefaultWriter(const SummaryWriter& writer, const Step& step);
  ~DefaultWriter();
  DefaultWriter(const DefaultWriter&) = delete;
  DefaultWriter& operator=(const DefaultWriter&) = delete;

 private:
  Defaults defaults_;
  ContextScope<&ThreadContext::summary> scope_;
};

// Summaries of the thread are recorded only where the condition holds, while the result lives.
//   const auto some = summary::record_if([&] { return step % 100 == 0; });
class RUNNEL_API RecordIf {
 public:
  explicit RecordIf(const Condition& condition);
  RecordIf(const RecordIf&) = delete;
  RecordIf& operator=(const RecordIf&) = delete;

 private:
  Defaults defaults_;
  ContextScope<&ThreadContext::summary> scope_;
};
[[nodiscard]] inline RecordIf record_if(const Condition& condition) { return RecordIf(condition); }

// Is there a writer, and does the condition hold?
RUNNEL_API Tensor should_record_summaries();
RUNNEL_API bool has_default_writer();

namespace experimental {
// The default step of the thread; set_step({}) takes it away. A function that is traced keeps the number that it was,
// a variable is read each time.
RUNNEL_API void set_step(const Step& step);
RUNNEL_API Step get_step();
}  // namespace experimental

// Returns once all that was given to the writer is with the system: to that of the thread, where none is named.
RUNNEL_API void flush(SourceSite where = SourceSite::current());
inline void flush(const SummaryWriter& writer, SourceSite where = SourceSite::current()) { writer.flush(where); }

}  // namespace runnel::summary
