#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/board/line.h"
#include "runnel/io/event.h"

namespace runnel::board {

// What the first value of a tag in a file says of all.
struct TagInfo {
  std::string tag;
  std::string plugin;
  std::string plugin_content;
  std::string display_name;
  std::string description;
  bool is_scalar() const { return plugin == "scalars"; }
};

// Where a value stands: in the record that begins there.
struct Sample {
  uint32_t tag = 0;  // its place among those of the file
  LinePoint point;   // the value is that of scalars
  uint64_t offset = 0;
};

// What one look at a file brought.
struct Batch {
  bool restarted = false;     // another file took its place: nothing from before holds
  std::vector<TagInfo> tags;  // new ones
  std::vector<Sample> samples;
  std::optional<double> begun;  // the time of the first event
  uint64_t end = 0;             // the file was read up to here

  // Empties it, keeping its memory for the next one.
  void clear() {
    restarted = false;
    tags.clear();
    samples.clear();
    begun.reset();
    end = 0;
  }
};

// Reads one event file piece by piece, while its writer is at work or another file takes its place. It reads into
// memory of its own: a mapped file that gets shorter would end the program.
class RUNNEL_API EventTail {
 public:
  explicit EventTail(std::string path, Env& env = Env::posix());

  // Is there anything to look for? Cheap. An Error where the file is gone.
  bool has_changed();
  // Reads about a megabyte more. False when all that could be read has been read. After an Error the file counts as
  // changed, and the next read goes on where this one began.
  bool read(Batch& batch);
  // The next batch begins the file anew, for the caller could not use the last one.
  void forget();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was last looked at
  // What is wrong with the file: damage, which was stepped over or where reading stopped. Empty: nothing.
  const std::string& complaint() const { return complaint_; }

 private:
  bool continues(const RandomAccessFile& file) const;
  void fill_window(const RandomAccessFile& file, uint64_t size);
  bool take_window(Batch& batch);
  void take_event(const io::Event& event, uint64_t offset, Batch& batch);
  void complain(const std::string& what, uint64_t offset);

  std::string path_;
  Env& env_;
  uint64_t size_ = 0;
  int64_t modified_ns_ = 0;
  uint64_t position_ = 0;
  bool due_ = true;                // there may be something to read although the file looks as it did
  bool restarted_ = false;         // what the next batch must say
  bool stuck_ = false;             // nothing behind the position can be found, as far as the file goes now
  std::string head_, last_bytes_;  // the first bytes of the file, and those before the position
  struct TextHash {
    using is_transparent = void;  // looks up views without a copy
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> tags_;
  std::vector<bool> scalar_;  // by tag
  std::string complaint_;
  std::string window_;  // the bytes from the position on; empty when nothing is being read
};

// A record larger than this is taken for damage.
inline constexpr uint64_t kLargestRecord = uint64_t{1} << 29;

// The bytes [offset, offset + size) of a file; fewer where it ends.
std::string read_range(const RandomAccessFile& file, uint64_t offset, uint64_t size);

}  // namespace runnel::board
