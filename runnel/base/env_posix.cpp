#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "runnel/base/env.h"
#include "runnel/base/format.h"

namespace runnel {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT: return Code::not_found;
    case EACCES:
    case EPERM:
    case EROFS: return Code::permission_denied;
    case EEXIST: return Code::already_exists;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE: return Code::resource_exhausted;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY: return Code::failed_precondition;
    case ENAMETOOLONG:
    case EINVAL: return Code::invalid_argument;
    case EIO: return Code::data_loss;
    default: return Code::unknown;
  }
}

Error io_error(const char* what, const std::string& path, int error) {
  return make_error(code_of(error), "[{}] {}: {}", what, path, std::generic_category().message(error));
}

// Calls `f` again when a signal interrupted it.
template <class F>
auto retry(F f) {
  auto result = f();
  while (result == -1 && errno == EINTR) result = f();
  return result;
}

class Descriptor {
 public:
  Descriptor(const char* what, const std::string& path, int flags) : path_(path) {
    fd_ = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
    if (fd_ < 0) throw io_error(what, path, errno);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

  struct ::stat status() const {
    struct ::stat status {};
    if (::fstat(fd_, &status) != 0) throw io_error("stat", path_, errno);
    return status;
  }
  // open() of a folder for reading succeeds, and only the read fails: say so at once.
  void require_file(const char* what) const {
    if (S_ISDIR(status().st_mode)) throw io_error(what, path_, EISDIR);
  }
  // Nor can a pipe be read at any place. It was opened with O_NONBLOCK, so that nobody waits for its other end.
  void require_places(const char* what) const {
    require_file(what);
    const mode_t mode = status().st_mode;
    if (S_ISFIFO(mode) || S_ISSOCK(mode)) {
      throw make_error(Code::failed_precondition, "[{}] {}: a pipe, not a file", what, path_);
    }
  }
  void close() {
    int fd = std::exchange(fd_, -1);
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) throw io_error("close", path_, errno);
  }

 private:
  std::string path_;
  int fd_;
};

class PosixSequentialFile : public SequentialFile {
 public:
  explicit PosixSequentialFile(const std::string& path) : file_("open", path, O_RDONLY) { file_.require_file("open"); }
  size_t read(std::span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size()) {
      ssize_t n = retry([&] { return ::read(file_.fd(), out.data() + done, out.size() - done); });
      if (n < 0) throw io_error("read", file_.path(), errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  Descriptor file_;
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  explicit PosixRandomAccessFile(const std::string& path) : file_("open", path, O_RDONLY | O_NONBLOCK) {
    file_.require_places("open");
  }
  uint64_t size() const override { return static_cast<uint64_t>(file_.status().st_size); }
  size_t read(uint64_t offset, std::span<std::byte> out) const override {
    size_t done = 0;
    while (done < out.size()) {
      ssize_t n = retry(
          [&] { return ::pread(file_.fd(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done)); });
      if (n < 0) throw io_error("read", file_.path(), errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  Descriptor file_;
};

class PosixMappedFile : public MappedFile {
 public:
  explicit PosixMappedFile(const std::string& path) {
    Descriptor file("open", path, O_RDONLY | O_NONBLOCK);
    file.require_places("open");
    size_ = static_cast<size_t>(file.status().st_size);
    if (size_ == 0) return;  // an empty mapping is an error to the system, not to us
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (data_ == MAP_FAILED) throw io_error("map", path, errno);
  }
  PosixMappedFile(const PosixMappedFile&) = delete;
  PosixMappedFile& operator=(const PosixMappedFile&) = delete;
  ~PosixMappedFile() override {
    if (size_ != 0) ::munmap(data_, size_);
  }
  ByteSpan bytes() const override { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(const char* what, const std::string& path, int flags)
      : file_(what, path, O_WRONLY | O_CREAT | flags) {}
  void append(ByteSpan bytes) override {
    size_t done = 0;
    while (done < bytes.size()) {
      ssize_t n = retry([&] { return ::write(file_.fd(), bytes.data() + done, bytes.size() - done); });
      if (n < 0) throw io_error("write", file_.path(), errno);
      done += static_cast<size_t>(n);
    }
  }
  void sync() override {
    if (::fsync(file_.fd()) != 0) throw io_error("sync", file_.path(), errno);
  }
  void close() override { file_.close(); }

 private:
  Descriptor file_;
};

class PosixFileLock;

// The locks that this process holds or waits for. A child of fork() has their descriptors, and would hold the locks
// until it ends: it closes them at once.
struct OpenLocks {
  std::mutex mutex;  // also while one is opened or closed
  std::set<PosixFileLock*> locks;
};
OpenLocks& open_locks();

class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(const std::string& path) {
    {
      const std::lock_guard guard(open_locks().mutex);
      file_.emplace("lock", path, flags(path));
      open_locks().locks.insert(this);
    }
    if (retry([&] { return ::flock(file_->fd(), LOCK_EX); }) == 0) return;
    const int error = errno;
    let_go();
    throw io_error("lock", path, error);
  }
  PosixFileLock(const PosixFileLock&) = delete;
  PosixFileLock& operator=(const PosixFileLock&) = delete;
  ~PosixFileLock() override { let_go(); }

  void close_in_child() { file_.reset(); }

 private:
  static int flags(const std::string& path) {  // a folder can be locked as it is
    struct ::stat status {};
    const bool folder = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    return folder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT;
  }
  void let_go() {
    const std::lock_guard guard(open_locks().mutex);
    open_locks().locks.erase(this);
    file_.reset();
  }
  std::optional<Descriptor> file_;
};

void close_locks_in_child() {
  for (PosixFileLock* lock : open_locks().locks) lock->close_in_child();
  open_locks().locks.clear();
  open_locks().mutex.unlock();
}

OpenLocks& open_locks() {
  static OpenLocks* const open = [] {
    ::pthread_atfork([] { open_locks().mutex.lock(); }, [] { open_locks().mutex.unlock(); }, close_locks_in_child);
    return new OpenLocks;  // stays: locks may be held while static objects end
  }();
  return *open;
}

class PosixEnv : public Env {
 public:
  std::unique_ptr<SequentialFile> open_sequential(const std::string& path) override {
    return std::make_unique<PosixSequentialFile>(path);
  }
  std::unique_ptr<RandomAccessFile> open_random(const std::string& path) override {
    return std::make_unique<PosixRandomAccessFile>(path);
  }
  std::unique_ptr<MappedFile> map(const std::string& path) override { return std::make_unique<PosixMappedFile>(path); }
  std::unique_ptr<WritableFile> create(const std::string& path) override {
    return std::make_unique<PosixWritableFile>("create", path, O_TRUNC);
  }
  std::unique_ptr<WritableFile> open_to_append(const std::string& path) override {
    return std::make_unique<PosixWritableFile>("append", path, O_APPEND);
  }

  FileInfo stat(const std::string& path) override {
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0) throw io_error("stat", path, errno);
    return {.size = static_cast<uint64_t>(status.st_size),
            .modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
            .is_dir = S_ISDIR(status.st_mode)};
  }

  // What cannot be looked up (no permission, a damaged disk) may well be there: that is no "no".
  bool exists(const std::string& path) override {
    if (::access(path.c_str(), F_OK) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw io_error("look up", path, errno);
  }

  std::vector<std::string> list(const std::string& dir) override {
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(dir.c_str()), ::closedir);
    if (!stream) throw io_error("list", dir, errno);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) throw io_error("list", dir, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  void create_dirs(const std::string& dir) override {
    if (::mkdir(dir.c_str(), 0777) == 0) return;
    if (errno == ENOENT && parent_dir(dir) != dir) {
      create_dirs(parent_dir(dir));
      if (::mkdir(dir.c_str(), 0777) == 0) return;
    }
    int error = errno;
    if (error == EEXIST && stat(dir).is_dir) return;
    throw io_error("create folder", dir, error);
  }

  void remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0) throw io_error("remove", path, errno);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw io_error("rename", from + " to " + to, errno);
  }

  void sync_dir(const std::string& dir) override {
    Descriptor file("sync folder", dir, O_RDONLY | O_DIRECTORY);
    // Some file systems cannot sync a folder and say EINVAL; there is nothing better to do then.
    if (::fsync(file.fd()) != 0 && errno != EINVAL) throw io_error("sync folder", dir, errno);
  }

  std::unique_ptr<FileLock> lock(const std::string& path) override { return std::make_unique<PosixFileLock>(path); }

  std::string create_temp_dir() override {
    const char* base = std::getenv("TMPDIR");
    std::string path = join_path(base != nullptr && *base != '\0' ? base : "/tmp", "runnel-XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) throw io_error("create temporary folder", path, errno);
    return path;
  }
};

}  // namespace

Env& Env::posix() {
  // Never destroyed: files may still be used while static objects are torn down.
  static auto* env = new PosixEnv;
  return *env;
}

}  // namespace runnel
