#include "runnel/summary/profiler.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/profile_files.h"
#include "runnel/op/composed.h"
#include "runnel/summary/profile_owner.h"
#include "runnel/tensor/allocator.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::profiler {
namespace {

struct Ownership {
  std::mutex mutex;
  Owner owner = Owner::none;
  std::string logdir;
};
Ownership& ownership() {
  static auto* const now = new Ownership;  // RUNNEL_PROFILE ends after static objects
  return *now;
}

// RUNNEL_PROFILE is asked first, for that takes the same lock.
std::unique_lock<std::mutex> lock_ownership() {
  profile::current_recording();
  return std::unique_lock(ownership().mutex);
}

const char* owner_text(Owner owner) {
  switch (owner) {
    case Owner::program: return "profiler::start";
    case Owner::trace: return "summary::trace_on";
    case Owner::environment: return "RUNNEL_PROFILE, until the program ends";
    case Owner::none: break;
  }
  return "the process that this one was forked from";
}

void warn_of_lost_events(const profile::Recording& recording) {
  if (recording.lost == 0) return;
  log_warning(
      "[profiler] {} events after the first {} found no room and are not in the profile: record for a shorter time",
      recording.lost, recording.events.size());
}

bool is_one_file(const std::string& path) {
  return path.ends_with(".json") || path.ends_with(".json.gz") || path.ends_with(".pb");
}

// At exit, of what RUNNEL_PROFILE began.
void write_program_profile() {
  if (!is_recording(Owner::environment)) return;  // a child made by fork
  try {
    write_recording(Owner::environment);
  } catch (const std::exception& e) {
    log_error("[profiler] RUNNEL_PROFILE: the profile is lost: {}", e.what());
  }
}

}  // namespace

void begin_recording(Owner owner, const std::string& logdir) {
  const auto lock = lock_ownership();
  Ownership& now = ownership();
  try {
    profile::start();
  } catch (const Error& e) {
    if (e.code() != Code::already_exists) throw;
    throw make_error(Code::already_exists,
                     "[profiler] another profile is being recorded, by {}: there is one at a time",
                     owner_text(now.owner));
  }
  now.owner = owner;
  now.logdir = logdir;
  profile::sample_memory(host_memory::stats().in_use);
}

bool is_recording(Owner owner) {
  const auto lock = lock_ownership();
  return ownership().owner == owner && profile::current_recording() != 0;
}

Ended end_recording(Owner owner) {
  std::string logdir;
  {
    const auto lock = lock_ownership();
    Ownership& now = ownership();
    if (now.owner != owner || profile::current_recording() == 0) {
      throw make_error(Code::unavailable, "[profiler] there is no profile to stop: none was started");
    }
    now.owner = Owner::none;
    logdir = std::exchange(now.logdir, {});
  }
  profile::StepScope::record_open_steps();
  return {.recording = profile::stop(), .logdir = std::move(logdir)};
}

profile::Recording write_recording(Owner owner, const std::string& path) {
  Ended ended = end_recording(owner);
  const std::string& to = path.empty() ? ended.logdir : path;
  if (owner == Owner::environment && is_one_file(to)) {
    io::write_profile_file(ended.recording, to);
  } else {
    io::write_profile_folder(ended.recording, to);
  }
  warn_of_lost_events(ended.recording);
  return std::move(ended.recording);
}

void start(const std::string& logdir, SourceSite where) {
  composed(where, [&] {
    if (logdir.empty()) throw invalid_argument("[profiler::start] the folder for the profile has no name");
    Env::posix().create_dirs(logdir);
    begin_recording(Owner::program, logdir);
  });
}

void stop(bool save, SourceSite where) {
  composed(where, [&] {
    if (save) {
      write_recording(Owner::program);
    } else {
      end_recording(Owner::program);
    }
  });
}

Profile::Profile(const std::string& logdir, SourceSite where) { start(logdir, where); }

Profile::~Profile() {
  try {
    stop();
  } catch (const std::exception& e) {
    log_error("{}", e.what());
  }
}

struct Trace::State {
  State(std::string_view name, int64_t step_num) : name(name) {
    if (step_num >= 0) {
      step.emplace(this->name, step_num);
    } else {
      span.emplace(profile::Kind::user, this->name, profile::current_step());
    }
  }
  const std::string name;
  const std::thread::id thread = std::this_thread::get_id();
  std::string detail;
  std::optional<profile::StepScope> step;
  std::optional<profile::Span> span;
};

Trace::Trace(std::string_view name, int64_t step_num) {
  if (step_num < -1) {
    throw invalid_argument("[profiler::Trace] '{}': step_num is {}; steps count from 0", name, step_num);
  }
  // A step may be under way when a recording begins.
  if (step_num >= 0 || profile::recording()) state_ = std::make_unique<State>(name, step_num);
}

// The thread that began a step goes on to refer to it, so one that ends elsewhere is never freed.
Trace::~Trace() {
  if (!state_ || state_->thread == std::this_thread::get_id()) return;
  log_warning("[profiler::Trace] '{}' ended on another thread than it began on: there it goes on", state_->name);
  (void)state_.release();  // NOLINT(bugprone-unused-return-value)
}

void Trace::set_metadata(std::string_view key, std::string_view value) {
  if (!state_) return;
  if (!state_->detail.empty()) state_->detail += ' ';
  state_->detail += fmt::format("{}={}", key, value);
  if (state_->step) state_->step->set_detail(state_->detail);
  if (state_->span && *state_->span) state_->span->set_detail(state_->detail);
}
void Trace::set_metadata(std::string_view key, int64_t value) { set_metadata(key, std::to_string(value)); }

}  // namespace runnel::profiler

namespace runnel::profile {

// Called by the first event of the program, wherever that is: nothing may be thrown.
void start_if_asked() {
  const char* const path = std::getenv("RUNNEL_PROFILE");
  if (!path || *path == '\0') return;
  try {
    Env::posix().create_dirs(profiler::is_one_file(path) ? parent_dir(path) : std::string(path));
    profiler::begin_recording(profiler::Owner::environment, path);
    std::atexit(profiler::write_program_profile);
  } catch (const std::exception& e) {
    log_error("[profiler] RUNNEL_PROFILE: nothing is recorded: {}", e.what());
  }
}

}  // namespace runnel::profile
