#pragma once

// Internal: profiles as files, where TensorBoard looks for them and anywhere else. docs/formats/profile.md
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/profile.h"

namespace runnel::io {

// Writes <logdir>/plugins/profile/<YYYY_MM_DD_HH_MM_SS>/<host>.xplane.pb and <host>.trace.json.gz, and, where no file
// of that kind is there, the event file in <logdir> by which TensorBoard knows that the folder has a profile. Gives the
// path of the first. The time is the local one of the recording's start; a profile that is there is never overwritten.
RUNNEL_API std::string write_profile_folder(const profile::Recording& recording, const std::string& logdir,
                                            Env& env = Env::posix());

// Writes one file, whose name says what it becomes: .json or .json.gz a trace for Perfetto, .pb for TensorBoard.
RUNNEL_API void write_profile_file(const profile::Recording& recording, const std::string& path,
                                   Env& env = Env::posix());
// An Error unless the name ends so.
RUNNEL_API void require_profile_path(const std::string& path);

// Reads either kind, ours and TensorFlow's. Damage is an Error that names the file and the offset.
RUNNEL_API profile::Recording read_profile_file(const std::string& path, Env& env = Env::posix());

struct ProfileFile {
  std::string path;
  std::string time;  // the folder's name, "2026_11_19_22_40_00"; empty of a file that was named itself
  std::string host;
};
// The file itself; of a folder, the profiles in it and below (a log folder, a run, or one profile), the newest last.
RUNNEL_API std::vector<ProfileFile> find_profiles(const std::string& path, Env& env = Env::posix());

}  // namespace runnel::io
