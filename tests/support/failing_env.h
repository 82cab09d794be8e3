#pragma once

// Envs for tests of what survives: steps that fail, processes that die, machines that lose power.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/error.h"

namespace runnel::test {

// Counts the steps that change files: creating, appending, syncing, closing, renaming, removing, syncing a folder.
// Step number `fail_at` (from 0) throws; with `dies`, every later one too, as if the process had ended there. Nothing
// is really synced: that takes long, and tests lose no power.
class FailingEnv : public EnvWrapper {
 public:
  explicit FailingEnv(Env& target = Env::posix()) : EnvWrapper(target), target_(target) {}

  int fail_at = -1;
  bool dies = false;
  int steps = 0;
  std::vector<std::string> log;  // what the steps were

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    step("create " + path);
    auto file = std::make_unique<File>(*this, path, target_.create(path));
    on_create(path);
    return file;
  }
  void rename(const std::string& from, const std::string& to) override {
    step("rename " + from + " to " + to);
    before_rename(from, to);
    target_.rename(from, to);
  }
  void remove(const std::string& path) override {
    step("remove " + path);
    before_remove(path);
    target_.remove(path);
  }
  void create_dirs(const std::string& dir) override {
    step("create folder " + dir);
    target_.create_dirs(dir);
  }
  void sync_dir(const std::string& dir) override {
    step("sync folder " + dir);
    on_sync_dir(dir);
  }

 protected:
  virtual void on_create(const std::string&) {}
  virtual void on_append(const std::string&, ByteSpan) {}
  virtual void on_sync(const std::string&) {}
  virtual void before_rename(const std::string&, const std::string&) {}
  virtual void before_remove(const std::string&) {}
  virtual void on_sync_dir(const std::string&) {}

 private:
  class File : public WritableFile {
   public:
    File(FailingEnv& env, std::string path, std::unique_ptr<WritableFile> file)
        : env_(env), path_(std::move(path)), file_(std::move(file)) {}
    void append(ByteSpan bytes) override {
      if (env_.next_fails()) file_->append(bytes.first(bytes.size() / 2));  // as a full disk does
      env_.step("append " + path_);
      file_->append(bytes);
      env_.on_append(path_, bytes);
    }
    void sync() override {
      env_.step("sync " + path_);
      env_.on_sync(path_);
    }
    void close() override {
      env_.step("close " + path_);
      file_->close();
    }

   private:
    FailingEnv& env_;
    std::string path_;
    std::unique_ptr<WritableFile> file_;
  };

  bool next_fails() const { return fail_at >= 0 && (steps == fail_at || (dies && steps > fail_at)); }
  void step(const std::string& what) {
    const bool fails = next_fails();
    ++steps;
    log.push_back(what);
    if (fails) throw Error(Code::resource_exhausted, "[" + what + "] No space left on device");
  }

  Env& target_;
};

// Remembers what is not on the disk yet, to lose it.
class PowerlessEnv : public FailingEnv {
 public:
  enum class Loss { bytes, all_names, oldest_name };
  using FailingEnv::FailingEnv;

  // What the disk has after the power went: bytes that were not synced are gone; or creations, renames and removals in
  // folders that were not synced are, all of them or (file systems write them in any order) just the oldest.
  void lose(Loss loss) {
    Env& disk = Env::posix();
    if (loss == Loss::bytes) {
      for (const auto& [path, file] : files_) {
        if (file.synced < file.written && disk.exists(path)) truncate(path, file.synced);
      }
    } else if (loss == Loss::oldest_name) {
      if (!names_.empty()) names_.front().undo();
    } else {
      for (auto& change : std::views::reverse(names_)) change.undo();
    }
    names_.clear();
    files_.clear();
  }

 private:
  struct FileState {
    size_t written = 0, synced = 0;
  };
  struct NameChange {
    std::string dir;
    std::function<void()> undo;
  };

  static std::optional<std::vector<std::byte>> content(const std::string& path) {
    if (!Env::posix().exists(path)) return std::nullopt;
    return Env::posix().read_file(path);
  }
  static void put(const std::string& path, const std::optional<std::vector<std::byte>>& bytes) {
    Env& disk = Env::posix();
    if (!bytes) {
      if (disk.exists(path)) disk.remove(path);
      return;
    }
    const auto file = disk.create(path);
    file->append(*bytes);
    file->close();
  }
  static void truncate(const std::string& path, size_t size) {
    std::vector<std::byte> bytes = Env::posix().read_file(path);
    bytes.resize(size);
    put(path, bytes);
  }

  void on_create(const std::string& path) override {
    files_[path] = {};
    names_.push_back({parent_dir(path), [path] { put(path, std::nullopt); }});
  }
  void on_append(const std::string& path, ByteSpan bytes) override { files_[path].written += bytes.size(); }
  void on_sync(const std::string& path) override { files_[path].synced = files_[path].written; }
  void before_rename(const std::string& from, const std::string& to) override {
    const auto moved = content(from), replaced = content(to);
    names_.push_back({parent_dir(to), [=] {
                        put(from, moved);
                        put(to, replaced);
                      }});
    files_[to] = files_[from];
    files_.erase(from);
  }
  void before_remove(const std::string& path) override {
    names_.push_back({parent_dir(path), [path, was = content(path)] { put(path, was); }});
    files_.erase(path);
  }
  void on_sync_dir(const std::string& dir) override {
    std::erase_if(names_, [&](const NameChange& change) { return change.dir == dir; });
  }

  std::map<std::string, FileState> files_;
  std::deque<NameChange> names_;
};

}  // namespace runnel::test
