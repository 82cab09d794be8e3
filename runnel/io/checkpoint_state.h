#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

// The text file `checkpoint` of a folder: which checkpoints there are and which is the latest.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the latest one's prefix
  std::vector<std::string> all_model_checkpoint_paths;  // from the oldest, the latest included
  std::vector<double> all_model_checkpoint_timestamps;  // of those, seconds since the Unix epoch; or none
  double last_preserved_timestamp = 0;                  // 0: none
  friend bool operator==(const CheckpointState&, const CheckpointState&) = default;
};

// As TensorFlow writes it: protobuf's text format.
RUNNEL_API std::string checkpoint_state_text(const CheckpointState& state);
// What stands in the text; an Error (data_loss) that names the line where it is none.
RUNNEL_API CheckpointState parse_checkpoint_state(std::string_view text, SourceSite where = SourceSite::current());

// The state file of a folder, with paths that can be opened: relative ones are joined to the folder, and where files
// were moved with their folder (or written on another machine), their new place is named. Nothing if there is no file;
// an Error if it cannot be read, is damaged, or names no checkpoint (it is empty, for example).
RUNNEL_API std::optional<CheckpointState> read_checkpoint_state(const std::string& dir,
                                                                const std::string& latest_filename = "checkpoint",
                                                                Env& env = Env::posix(),
                                                                SourceSite where = SourceSite::current());

// Replaces the state file at once; after a crash it is the old one or the new one. The paths are those that the program
// uses. With relative_paths they are written relative to the folder, so that it can be moved; otherwise absolute ones
// stay. model_checkpoint_path is appended to the others where it is not the last of them. Returns the text.
struct WriteCheckpointStateOptions {
  std::string latest_filename = "checkpoint";
  bool relative_paths = true;
};
RUNNEL_API std::string write_checkpoint_state(const std::string& dir, const CheckpointState& state,
                                              const WriteCheckpointStateOptions& options = {}, Env& env = Env::posix(),
                                              SourceSite where = SourceSite::current());

// The prefix of the latest checkpoint of a folder, by its state file; nothing if there is none, and, as TensorFlow has
// it, also if the file is damaged (with a warning) or the checkpoint's files are missing (with an error in the log).
// A program that must not begin anew then asks read_checkpoint_state.
RUNNEL_API std::optional<std::string> latest_checkpoint(const std::string& dir,
                                                        const std::string& latest_filename = "checkpoint",
                                                        Env& env = Env::posix(),
                                                        SourceSite where = SourceSite::current());

}  // namespace runnel::io
