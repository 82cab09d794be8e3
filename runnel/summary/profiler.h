#pragma once

// Profiles: what the program did and how long it took. tf.profiler.experimental. docs/profiling.md
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::profiler {

// Records what all threads do from here to stop(). An Error (already_exists) where a profile is being recorded.
RUNNEL_API void start(const std::string& logdir, SourceSite where = SourceSite::current());
// Ends the recording and writes it to logdir/plugins/profile/<time>/, where TensorBoard and `runnel profile` look; with
// save = false it is thrown away. An Error (unavailable) where start() was not called.
RUNNEL_API void stop(bool save = true, SourceSite where = SourceSite::current());

// start() and stop() as a block. What goes wrong at its end goes to the log.
class RUNNEL_API Profile {
 public:
  explicit Profile(const std::string& logdir, SourceSite where = SourceSite::current());
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
};

// Work of the program that profiles show: from here to the end of the block, on this thread. With a number it is a step
// of training, and what happens meanwhile counts to it. It ends on the thread that made it.
//   const profiler::Trace step("train", batch_index);
class RUNNEL_API Trace {
 public:
  explicit Trace(std::string_view name, int64_t step_num = -1);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  // Is shown with it: "batch_size=50".
  void set_metadata(std::string_view key, std::string_view value);
  void set_metadata(std::string_view key, int64_t value);

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: nothing is recorded of it
};

// TensorFlow's place for them.
namespace experimental {
using profiler::Profile;
using profiler::start;
using profiler::stop;
using profiler::Trace;
}  // namespace experimental

}  // namespace runnel::profiler
