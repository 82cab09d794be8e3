#include "runnel/io/checkpoint_state.h"

#include <filesystem>

#include "runnel/base/caller_line.h"
#include "runnel/base/decimal.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/checkpoint_commit.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/text_proto.h"

namespace runnel::io {
namespace {

constexpr const char* kLatest = "model_checkpoint_path";
constexpr const char* kAll = "all_model_checkpoint_paths";
constexpr const char* kTimes = "all_model_checkpoint_timestamps";
constexpr const char* kPreserved = "last_preserved_timestamp";

bool is_absolute(const std::string& path) { return path.starts_with('/'); }

std::filesystem::path plain_path(const std::string& path) {
  const std::filesystem::path plain = std::filesystem::absolute(path.empty() ? "." : path).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();  // without a slash at the end
}

std::string relative_to(const std::string& dir, const std::string& path) {
  return plain_path(path).lexically_relative(plain_path(dir)).string();
}

// Where a checkpoint of the state file is: the path may be one of another machine, or of before the folder was moved.
std::string found_path(const std::string& dir, const std::string& path, Env& env) {
  std::string joined = is_absolute(path) ? path : join_path(dir, path);
  if (checkpoint_exists(joined, env)) return joined;
  const std::string here = join_path(dir, path.substr(path.find_last_of('/') + 1));
  return checkpoint_exists(here, env) ? here : joined;
}

}  // namespace

std::string checkpoint_state_text(const CheckpointState& state) {
  std::string text = fmt::format("{}: {}\n", kLatest, text_proto_string(state.model_checkpoint_path));
  for (const std::string& path : state.all_model_checkpoint_paths) {
    text += fmt::format("{}: {}\n", kAll, text_proto_string(path));
  }
  for (double time : state.all_model_checkpoint_timestamps) text += fmt::format("{}: {}\n", kTimes, shortest(time));
  if (state.last_preserved_timestamp != 0) {
    text += fmt::format("{}: {}\n", kPreserved, shortest(state.last_preserved_timestamp));
  }
  return text;
}

CheckpointState parse_checkpoint_state(std::string_view text, SourceSite where) {
  return at_caller(where, [&] {
    CheckpointState state;
    TextProtoReader reader(text);
    while (std::optional<std::string> field = reader.field()) {
      reader.values([&] {
        if (*field == kLatest) {
          state.model_checkpoint_path = reader.string();
        } else if (*field == kAll) {
          state.all_model_checkpoint_paths.push_back(reader.string());
        } else if (*field == kTimes) {
          state.all_model_checkpoint_timestamps.push_back(reader.number());
        } else if (*field == kPreserved) {
          state.last_preserved_timestamp = reader.number();
        } else {
          throw reader.bad(fmt::format("there is no field '{}'", *field));
        }
      });
    }
    return state;
  });
}

namespace {

struct StateFile {
  std::string path;
  CheckpointState parsed;
  std::optional<Error> garbage;  // what is wrong with its text

  // With paths that can be opened.
  CheckpointState state(const std::string& dir, Env& env) const {
    if (garbage) {
      throw make_error(Code::data_loss,
                       "[checkpoint] {}: it is damaged, so what the folder holds is not known: {}; write the latest "
                       "checkpoint into it ({}: \"...\"), or remove it to begin anew",
                       path, garbage->what(), kLatest)
          .inside(file_frame(path, 0));
    }
    if (parsed.model_checkpoint_path.empty()) {
      throw make_error(Code::data_loss,
                       "[checkpoint] {}: it names no checkpoint; remove it, or name one in it: {}: \"...\"", path,
                       kLatest)
          .inside(file_frame(path, 0));
    }
    CheckpointState found = parsed;
    found.model_checkpoint_path = found_path(dir, parsed.model_checkpoint_path, env);
    for (std::string& each : found.all_model_checkpoint_paths) each = found_path(dir, each, env);
    return found;
  }
};

// Nothing if there is none. One that is there and cannot be read is an Error: its checkpoints are there, too.
std::optional<StateFile> read_state_file(const std::string& dir, const std::string& name, Env& env) {
  StateFile file{.path = join_path(dir, name), .parsed = {}, .garbage = {}};
  if (!env.exists(file.path)) return std::nullopt;
  const std::vector<std::byte> bytes = env.read_file(file.path);
  try {
    file.parsed = parse_checkpoint_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    file.garbage = error;
  }
  return file;
}

}  // namespace

std::optional<CheckpointState> read_checkpoint_state(const std::string& dir, const std::string& latest_filename,
                                                     Env& env, SourceSite where) {
  return at_caller(where, [&] {
    const std::optional<StateFile> file = read_state_file(dir, latest_filename, env);
    return file ? std::optional(file->state(dir, env)) : std::nullopt;
  });
}

std::string write_checkpoint_state(const std::string& dir, const CheckpointState& state,
                                   const WriteCheckpointStateOptions& options, Env& env, SourceSite where) {
  return at_caller(where, [&] {
    CheckpointState written = state;
    if (written.all_model_checkpoint_paths.empty() ||
        written.all_model_checkpoint_paths.back() != written.model_checkpoint_path) {
      written.all_model_checkpoint_paths.push_back(written.model_checkpoint_path);
    }
    const size_t times = written.all_model_checkpoint_timestamps.size();
    if (times != 0 && times != written.all_model_checkpoint_paths.size()) {
      throw invalid_argument("[checkpoint] {} checkpoints with {} times: each has one, or none has",
                             written.all_model_checkpoint_paths.size(), times);
    }
    // A relative path is relative to where the program runs, as long as the folder is.
    const auto as_written = [&](const std::string& path) {
      return is_absolute(path) ? (options.relative_paths ? relative_to(dir, path) : path)
                               : (is_absolute(dir) ? path : relative_to(dir, path));
    };
    written.model_checkpoint_path = as_written(written.model_checkpoint_path);
    for (std::string& path : written.all_model_checkpoint_paths) path = as_written(path);
    if (written.model_checkpoint_path == options.latest_filename) {
      throw invalid_argument("[checkpoint] '{}' is the name of the state file; save the checkpoint under another one",
                             state.model_checkpoint_path);
    }
    std::string text = checkpoint_state_text(written);
    const std::string path = join_path(dir, options.latest_filename);
    TemporaryFile file(path, env);
    file.write(as_bytes(text));
    file.rename_to(path);
    env.sync_dir(dir);
    return text;
  });
}

std::optional<std::string> latest_checkpoint(const std::string& dir, const std::string& latest_filename, Env& env,
                                             SourceSite where) {
  return at_caller(where, [&]() -> std::optional<std::string> {
    const std::optional<StateFile> file = read_state_file(dir, latest_filename, env);
    if (!file) return std::nullopt;
    if (file->garbage) {
      log_warning("[checkpoint] {} is ignored: {}", file->path, file->garbage->what());
      return std::nullopt;
    }
    const std::string latest = file->state(dir, env).model_checkpoint_path;
    if (checkpoint_exists(latest, env)) return latest;
    log_error("[checkpoint] {} names {}, whose files are missing", file->path, latest);
    return std::nullopt;
  });
}

}  // namespace runnel::io
