#include <cstdio>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/base/md5.h"
#include "runnel/base/sha256.h"
#include "runnel/io/fetch.h"
#include "runnel/io/gzip.h"
#include "runnel/io/tar.h"
#include "runnel/io/zip.h"
#include "runnel/keras/utils.h"
#include "runnel/op/composed.h"

namespace runnel::keras::utils {
namespace {

std::string hash_of_file(const std::string& path, const std::string& like) {
  return like.size() == 64 ? sha256_file(Env::posix(), path) : md5_file(Env::posix(), path);
}

bool is_wanted_file(const std::string& path, const std::string& hash) {
  return Env::posix().exists(path) && (hash.empty() || hash_of_file(path, hash) == hash);
}

void download_file(const std::string& origin, const std::string& path, const std::string& hash) {
  std::printf("Downloading data from %s\n", origin.c_str());
  std::optional<Progbar> bar;
  uint64_t drawn = 0;
  const auto progress = [&](uint64_t done, uint64_t total) {
    if (total == 0 || done == drawn) return;
    if (!bar) bar.emplace(static_cast<int64_t>(total));
    bar->update(static_cast<int64_t>(done));
    drawn = done;
  };
  io::fetch(origin, path, {.sha256 = hash.size() == 64 ? hash : "", .progress = progress});
  if (hash.size() != 32) return;
  if (const std::string got = hash_of_file(path, hash); got != hash) {
    Env::posix().remove(path);
    throw make_error(Code::data_loss, "[get_file] {}: md5 is {}, expected {}", origin, got, hash);
  }
}

// Writes a member of an archive below `dir`; one that would land elsewhere is an error.
void place_member(const std::string& dir, const std::string& name, ByteSpan bytes, const std::string& archive) {
  if (name.starts_with('/') || fmt::format("/{}/", name).find("/../") != std::string::npos) {
    throw make_error(Code::data_loss, "[get_file] {}: the member '{}' would lie outside of {}", archive, name, dir);
  }
  Env& env = Env::posix();
  const std::string path = join_path(dir, name);
  if (env.exists(path) && env.stat(path).size == bytes.size()) return;
  env.create_dirs(parent_dir(path));
  env.write_file(path, bytes);
}

void unpack(const std::string& path, const std::string& dir) {
  const std::unique_ptr<MappedFile> file = Env::posix().map(path);
  if (path.ends_with(".zip")) {
    for (const io::ZipMember& member : io::zip_members(file->bytes(), path)) {
      if (member.name.ends_with('/')) continue;
      place_member(dir, member.name, io::read_zip_member(file->bytes(), member, path), path);
    }
  } else if (path.ends_with(".tar") || path.ends_with(".tar.gz") || path.ends_with(".tgz")) {
    std::vector<std::byte> plain;
    if (io::is_gzip(file->bytes())) plain = io::gunzip(file->bytes(), path);
    const ByteSpan archive = plain.empty() ? file->bytes() : ByteSpan(plain);
    for (const io::TarMember& member : io::tar_members(archive, path)) {
      place_member(dir, member.name, member.bytes, path);
    }
  } else {
    throw make_error(Code::unimplemented, "[get_file] {}: only .zip, .tar, .tar.gz and .tgz are unpacked", path);
  }
}

}  // namespace

std::string get_file(const std::string& fname, const std::string& origin, const GetFileOptions& options,
                     SourceSite where) {
  return composed(where, [&] {
    const std::string& hash = options.file_hash;
    if (!hash.empty() && hash.size() != 64 && hash.size() != 32) {
      throw invalid_argument("[get_file] file_hash has {} digits; sha256 has 64, md5 32", hash.size());
    }
    if (fname.empty() || fname.ends_with('/')) throw invalid_argument("[get_file] fname '{}' names no file", fname);
    const std::string cache = options.cache_dir.empty() ? io::cache_dir() : options.cache_dir;
    const std::string dir = join_path(cache, options.cache_subdir), path = join_path(dir, fname);
    Env& env = Env::posix();
    env.create_dirs(parent_dir(path));
    const std::unique_ptr<FileLock> lock = env.lock(path + ".lock");  // one process downloads, the others wait
    if (!is_wanted_file(path, hash)) download_file(origin, path, hash);
    if (options.extract) unpack(path, dir);
    return path;
  });
}

}  // namespace runnel::keras::utils
