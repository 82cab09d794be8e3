#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runnel/base/export.h"

namespace runnel {

using ByteSpan = std::span<const std::byte>;

inline ByteSpan as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Open files are used by one thread at a time, except RandomAccessFile, whose read is safe from many.

class RUNNEL_API SequentialFile {
 public:
  virtual ~SequentialFile() = default;
  // Fills `out` from the current position; fewer bytes than asked for means that the file ended there.
  virtual size_t read(std::span<std::byte> out) = 0;
};

class RUNNEL_API RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; fewer bytes than asked for means that the file ended there.
  virtual size_t read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// A whole file in memory, read only. The file must not shrink while it is mapped.
class RUNNEL_API MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual ByteSpan bytes() const = 0;
};

class RUNNEL_API WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes, and then cannot report a failure: call close() first
  virtual void append(ByteSpan bytes) = 0;
  virtual void sync() = 0;  // returns once the bytes are on the disk
  virtual void close() = 0;
};

// Held until destroyed; the system drops it when the process ends.
class RUNNEL_API FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FileInfo {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since the Unix epoch
  bool is_dir = false;
};

// Everything the library does with files goes through an Env, so that tests can make it fail.
// Failures throw Error with a fitting code; the message starts with what was tried and names the file.
class RUNNEL_API Env {
 public:
  virtual ~Env() = default;
  static Env& posix();

  virtual std::unique_ptr<SequentialFile> open_sequential(const std::string& path) = 0;
  virtual std::unique_ptr<RandomAccessFile> open_random(const std::string& path) = 0;
  virtual std::unique_ptr<MappedFile> map(const std::string& path) = 0;
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;          // empties what was there
  virtual std::unique_ptr<WritableFile> open_to_append(const std::string& path) = 0;  // creates if missing
  virtual FileInfo stat(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& dir) = 0;        // names, sorted, without . and ..
  virtual void create_dirs(const std::string& dir) = 0;                     // with parents; fine if it exists
  virtual void remove(const std::string& path) = 0;                         // a file or an empty folder
  virtual void rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual void sync_dir(const std::string& dir) = 0;                    // makes creations and renames inside durable
  virtual std::unique_ptr<FileLock> lock(const std::string& path) = 0;  // creates the file; waits its turn
  virtual std::string create_temp_dir() = 0;

  // Built from the above.
  std::vector<std::byte> read_file(const std::string& path);
  // After a crash at any moment `path` holds either what it held before or all of `bytes`.
  void write_file(const std::string& path, ByteSpan bytes);
  void remove_tree(const std::string& path);  // nothing happens if it is missing
};

// Forwards every call; a test overrides what it wants to fail or to count.
class RUNNEL_API EnvWrapper : public Env {
 public:
  explicit EnvWrapper(Env& target) : target_(target) {}
  std::unique_ptr<SequentialFile> open_sequential(const std::string& path) override;
  std::unique_ptr<RandomAccessFile> open_random(const std::string& path) override;
  std::unique_ptr<MappedFile> map(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<WritableFile> open_to_append(const std::string& path) override;
  FileInfo stat(const std::string& path) override;
  bool exists(const std::string& path) override;
  std::vector<std::string> list(const std::string& dir) override;
  void create_dirs(const std::string& dir) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_dir(const std::string& dir) override;
  std::unique_ptr<FileLock> lock(const std::string& path) override;
  std::string create_temp_dir() override;

 private:
  Env& target_;
};

RUNNEL_API std::string join_path(const std::string& dir, const std::string& name);
RUNNEL_API std::string parent_dir(const std::string& path);  // "." for a bare name

}  // namespace runnel
