#pragma once

// Internal: makes a Recording of the events that a file holds. In files of others events do not say their step: it
// follows from groups, from the step around them, and from links between threads.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runnel/base/profile.h"

namespace runnel::io {

// What a file says of an event beside the event itself. -1: nothing.
struct ProfileMarks {
  int64_t group = -1;                     // events of one group are of one step
  int64_t gives_type = -1, gives_id = 0;  // work on another thread goes on for this event: where it says
  int64_t takes_type = -1, takes_id = 0;  // that it takes the same
  bool linked() const { return gives_type >= 0 || takes_type >= 0; }
};

// A number of bytes of a file that may lie: sums of these do not overflow.
inline int64_t profile_bytes(int64_t bytes) { return std::clamp<int64_t>(bytes, 0, int64_t{1} << 50); }

class ProfileBuilder {
 public:
  // `path` begins errors; a hostile file of `file_bytes` must not make much more memory than a real one.
  ProfileBuilder(std::string path, uint64_t file_bytes);

  // An Error (data_loss, at this offset) where the event ends before it begins.
  void add(profile::Event event, const ProfileMarks& marks, uint64_t offset);
  // Puts the events in order: by begin, and outer before inner ones. In files of others (`find_steps`) each gets its
  // step.
  void finish(profile::Recording* recording, bool find_steps);

  // Counts text that is kept of the file.
  void count_text(uint64_t bytes, uint64_t offset);
  [[noreturn]] void fail(uint64_t offset, const std::string& what) const;

 private:
  struct Marked {
    size_t event;
    ProfileMarks marks;
  };
  void begin_at_first(profile::Recording* recording);
  void take_steps_of_groups();
  void take_steps_from_around();
  bool take_steps_through_links();

  std::string path_;
  uint64_t text_left_;
  std::vector<profile::Event> events_;
  std::vector<Marked> marked_;
  std::vector<bool> covers_;  // events whose step is that of what they contain
};

}  // namespace runnel::io
