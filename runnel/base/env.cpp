#include "runnel/base/env.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "runnel/base/format.h"
#include "runnel/base/temporary_name.h"

namespace runnel {

std::string join_path(const std::string& dir, const std::string& name) {
  if (dir.empty() || name.starts_with('/')) return name;
  return dir.ends_with('/') ? dir + name : dir + '/' + name;
}

std::string parent_dir(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::byte> Env::read_file(const std::string& path) {
  std::unique_ptr<SequentialFile> file = open_sequential(path);
  // The size is only a guess (a pipe has none, a file may grow); one spare byte lets the read see the end.
  std::vector<std::byte> bytes(stat(path).size + 1);
  size_t filled = 0;
  while (true) {
    filled += file->read(std::span(bytes).subspan(filled));
    if (filled < bytes.size()) break;
    bytes.resize(bytes.size() * 2);
  }
  bytes.resize(filled);
  return bytes;
}

std::string temporary_name(const std::string& path, const std::string& mark) {
  static std::atomic<uint64_t> serial{0};
  return fmt::format("{}{}{}-{}", path, mark, ::getpid(), serial++);
}

void Env::write_file(const std::string& path, ByteSpan bytes) {
  const std::string temp = temporary_name(path, ".tmp-");
  try {
    std::unique_ptr<WritableFile> file = create(temp);
    file->append(bytes);
    file->sync();
    file->close();
    rename(temp, path);
  } catch (...) {
    try {
      if (exists(temp)) remove(temp);
    } catch (const Error&) {
      // The first failure is the one to report.
    }
    throw;
  }
  sync_dir(parent_dir(path));
}

void Env::remove_tree(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) {  // the link goes, not what it leads to
    remove(path);
    return;
  }
  if (!exists(path)) return;
  if (stat(path).is_dir) {
    for (const std::string& name : list(path)) remove_tree(join_path(path, name));
  }
  remove(path);
}

std::unique_ptr<SequentialFile> EnvWrapper::open_sequential(const std::string& path) {
  return target_.open_sequential(path);
}
std::unique_ptr<RandomAccessFile> EnvWrapper::open_random(const std::string& path) { return target_.open_random(path); }
std::unique_ptr<MappedFile> EnvWrapper::map(const std::string& path) { return target_.map(path); }
std::unique_ptr<WritableFile> EnvWrapper::create(const std::string& path) { return target_.create(path); }
std::unique_ptr<WritableFile> EnvWrapper::open_to_append(const std::string& path) {
  return target_.open_to_append(path);
}
FileInfo EnvWrapper::stat(const std::string& path) { return target_.stat(path); }
bool EnvWrapper::exists(const std::string& path) { return target_.exists(path); }
std::vector<std::string> EnvWrapper::list(const std::string& dir) { return target_.list(dir); }
void EnvWrapper::create_dirs(const std::string& dir) { target_.create_dirs(dir); }
void EnvWrapper::remove(const std::string& path) { target_.remove(path); }
void EnvWrapper::rename(const std::string& from, const std::string& to) { target_.rename(from, to); }
void EnvWrapper::sync_dir(const std::string& dir) { target_.sync_dir(dir); }
std::unique_ptr<FileLock> EnvWrapper::lock(const std::string& path) { return target_.lock(path); }
std::string EnvWrapper::create_temp_dir() { return target_.create_temp_dir(); }

}  // namespace runnel
