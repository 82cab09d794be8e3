#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runnel/io/event.h"
#include "runnel/io/record_reader.h"

namespace runnel::io {

// Reads one event file from front to back, also while another program still writes to it. Used by one thread at a time.
class RUNNEL_API EventReader {
 public:
  explicit EventReader(const std::string& path, Env& env = Env::posix(), SourceSite where = SourceSite::current());
  // Events in memory; `name` stands for the path in errors.
  EventReader(ByteSpan bytes, std::string name, SourceSite where = SourceSite::current());
  ~EventReader();
  EventReader(EventReader&&) noexcept;
  EventReader& operator=(EventReader&&) noexcept;

  enum class Status {
    event,
    end,      // of what was there when the file was opened or refreshed
    cut,      // the same, but the last event is not whole: its writer is at work or was killed
    damaged,  // told by error(); skip_damaged() goes on behind it
  };
  // The views of the event are valid until refresh().
  Status read(Event* event);
  const RecordError& error() const;  // of a cut or damaged event
  // Steps over damage; false: nothing behind it can be found.
  bool skip_damaged();
  [[noreturn]] void throw_error(SourceSite where = SourceSite::current()) const;  // error() as an exception

  // Looks at the file again; true when it has grown since. An Error when it has become shorter.
  bool refresh(SourceSite where = SourceSite::current());

  RecordPosition position() const;
  uint64_t file_size() const;  // as far as it was seen
  const std::string& path() const;

 private:
  struct State;
  State& state() const;  // an Error where it was moved from

  std::unique_ptr<State> state_;
};

// The event files of one run: those that stand in one folder.
struct EventRun {
  std::string name;                // the folder, from where the search began; "." is that itself
  std::vector<std::string> files;  // paths, in the order in which they were begun
};
// Is it a name of an event file?
RUNNEL_API bool is_event_file(std::string_view name);
// The runs below a folder, sorted by name; of a file, its own. Folders and files that vanish meanwhile are left out,
// and, with a warning, folders that cannot be read. A folder that links lead to is one run.
RUNNEL_API std::vector<EventRun> find_event_runs(const std::string& path, Env& env = Env::posix(),
                                                 SourceSite where = SourceSite::current());
// The same, but links that lead out of the folder are left out.
RUNNEL_API std::vector<EventRun> find_event_runs_inside(const std::string& path, Env& env = Env::posix(),
                                                        SourceSite where = SourceSite::current());

}  // namespace runnel::io
