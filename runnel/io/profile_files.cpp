#include "runnel/io/profile_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <tuple>

#include "runnel/base/format.h"
#include "runnel/io/chrome_trace.h"
#include "runnel/io/event.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/glob.h"
#include "runnel/io/gzip.h"
#include "runnel/io/record_writer.h"
#include "runnel/io/xplane.h"

namespace runnel::io {
namespace {

constexpr std::string_view kXplaneEnd = ".xplane.pb";
constexpr std::string_view kTraceEnd = ".trace.json.gz";
constexpr std::string_view kEmptyEnd = ".profile-empty";

std::string file_host(const profile::Recording& recording) {
  std::string host = recording.host.empty() ? "localhost" : recording.host;
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

std::string local_time_name(int64_t unix_ns) {
  const std::time_t seconds = unix_ns > 0 ? static_cast<std::time_t>(unix_ns / 1'000'000'000) : ::time(nullptr);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 64> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y_%m_%d_%H_%M_%S", &local));
}

ByteSpan span_of(const std::string& text) { return as_bytes(text); }

// TensorBoard looks for profiles only in folders with event files.
void mark_folder(const std::string& logdir, const std::string& host, Env& env) {
  for (const std::string& name : env.list(logdir)) {
    if (name.ends_with(kEmptyEnd)) return;
  }
  const auto now = ::time(nullptr);
  std::string event;
  append_version_event(event, static_cast<double>(now));
  TFRecordWriter file(
      join_path(logdir, fmt::format("events.out.tfevents.{:010}.{}{}", static_cast<int64_t>(now), host, kEmptyEnd)),
      {.atomic = true}, env, SourceSite());
  file.write(event, SourceSite());
  file.close(SourceSite());
}

// The pattern that stands for just this path.
std::string literal_pattern(const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

std::string write_profile_folder(const profile::Recording& recording, const std::string& logdir, Env& env) {
  const std::string host = file_host(recording);
  const std::string profiles = join_path(join_path(logdir, "plugins"), "profile");
  const std::string time = local_time_name(recording.started_unix_ns);
  std::string name = join_path(join_path(profiles, time), host);
  for (int again = 2; env.exists(name + std::string(kXplaneEnd)); ++again) {
    name = join_path(join_path(profiles, fmt::format("{}_{}", time, again)), host);
  }
  env.create_dirs(parent_dir(name));
  const std::string path = name + std::string(kXplaneEnd);
  env.write_file(path, span_of(xspace_bytes(recording)));
  env.write_file(name + std::string(kTraceEnd), gzip(span_of(chrome_trace_json(recording))));
  mark_folder(logdir, host, env);
  return path;
}

void require_profile_path(const std::string& path) {
  if (path.ends_with(".json") || path.ends_with(".json.gz") || path.ends_with(".pb")) return;
  throw invalid_argument(
      "[profile] {}: the name of a profile ends with .json or .json.gz (a trace for Perfetto) or .xplane.pb (for "
      "TensorBoard)",
      path);
}

void write_profile_file(const profile::Recording& recording, const std::string& path, Env& env) {
  require_profile_path(path);
  if (path.ends_with(".pb")) {
    env.write_file(path, span_of(xspace_bytes(recording)));
  } else if (path.ends_with(".gz")) {
    env.write_file(path, gzip(span_of(chrome_trace_json(recording))));
  } else {
    env.write_file(path, span_of(chrome_trace_json(recording)));
  }
}

profile::Recording read_profile_file(const std::string& path, Env& env) {
  std::vector<std::byte> bytes = env.read_file(path);
  if (is_gzip(bytes)) bytes = gunzip(bytes, path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) {
    throw Error(Code::data_loss, fmt::format("[profile] {}: the file is empty", path), {file_frame(path, 0)});
  }
  // An XSpace begins with 0x0a, its first plane. For JSON that is an end of line.
  const size_t first = path.ends_with(".pb") ? std::string_view::npos : text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  profile::Recording recording = json || path.ends_with(".json") || path.ends_with(".json.gz")
                                     ? parse_chrome_trace(text, path)
                                     : parse_xspace(text, path);
  if (recording.threads.empty() && recording.events.empty() && recording.memory.empty()) {
    throw Error(Code::data_loss, fmt::format("[profile] {}: there is no thread and no event in it", path),
                {file_frame(path, 0)});
  }
  return recording;
}

std::vector<ProfileFile> find_profiles(const std::string& path, Env& env) {
  if (!env.stat(path).is_dir) return {{.path = path}};
  constexpr int deepest = 6;  // runs below runs
  // By folder and host: the xplane where there are both files.
  std::map<std::pair<std::string, std::string>, std::string> found;
  const auto take = [&](const std::string& folder_pattern) {
    for (const std::string_view end : {kXplaneEnd, kTraceEnd}) {
      for (const std::string& file : matching_paths(join_path(folder_pattern, "*" + std::string(end)), env)) {
        const std::string folder = parent_dir(file);
        const size_t begin = folder == "." && !file.starts_with("./") ? 0 : folder.size() + 1;
        found.try_emplace({folder, file.substr(begin, file.size() - begin - end.size())}, file);
      }
    }
  };
  std::string base = literal_pattern(path);
  take(base);
  take(join_path(base, "*"));  // the folder "profile" itself
  for (int depth = 0; depth < deepest; ++depth, base = join_path(base, "*")) {
    take(join_path(base, "plugins/profile/*"));
  }
  std::vector<ProfileFile> files;
  for (const auto& [key, file] : found) {
    const std::string& folder = key.first;
    files.push_back({.path = file, .time = folder.substr(folder.rfind('/') + 1), .host = key.second});
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const ProfileFile& a, const ProfileFile& b) { return a.time < b.time; });
  if (files.empty()) {
    throw make_error(Code::not_found,
                     "[profile] {}: no profile is there: neither a .xplane.pb or .trace.json.gz file nor a folder "
                     "plugins/profile with some",
                     path);
  }
  return files;
}

}  // namespace runnel::io
