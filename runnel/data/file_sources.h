#pragma once

// Datasets of what stands in files.
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/data/memory_sources.h"

namespace runnel::data {

// Paths: one, several, a string tensor of them, or a dataset of them.
class RUNNEL_API Paths {
 public:
  Paths(const char* path, SourceSite where = SourceSite::current());                          // NOLINT: implicit
  Paths(const std::string& path, SourceSite where = SourceSite::current());                   // NOLINT
  Paths(std::initializer_list<std::string> paths, SourceSite where = SourceSite::current());  // NOLINT
  Paths(const std::vector<std::string>& paths, SourceSite where = SourceSite::current());     // NOLINT
  Paths(const Tensor& paths, SourceSite where = SourceSite::current());          // NOLINT: a scalar or a vector
  Paths(const Dataset<Tensor>& paths, SourceSite where = SourceSite::current())  // NOLINT
      : node_(detail::node_at(paths, where)) {}
  const NodePtr& node() const { return node_; }

 private:
  NodePtr node_;
};

// One string per line, without its end.
class TextLineDataset : public Dataset<Tensor> {
 public:
  explicit TextLineDataset(const Paths& paths, const TextLineOptions& options = {}, Env& env = Env::posix(),
                           SourceSite where = SourceSite::current())
      : Dataset(detail::called_at(where, [&] { return nodes::text_lines(paths.node(), options, env); })) {}
};
// One string per `record_bytes` bytes.
class FixedLengthRecordDataset : public Dataset<Tensor> {
 public:
  FixedLengthRecordDataset(const Paths& paths, const FixedLengthOptions& options, Env& env = Env::posix(),
                           SourceSite where = SourceSite::current())
      : Dataset(detail::called_at(where, [&] { return nodes::fixed_length_records(paths.node(), options, env); })) {}
};
// One string per record of TFRecord files.
class TFRecordDataset : public Dataset<Tensor> {
 public:
  explicit TFRecordDataset(const Paths& paths, const RecordOptions& options = {}, Env& env = Env::posix(),
                           SourceSite where = SourceSite::current())
      : Dataset(detail::called_at(where, [&] { return nodes::records(paths.node(), options, env); })) {}
};

// The same of plain files as a source that knows its length and answers by number: shuffles are permutations that hold
// no records, over all files at once. An index beside a file (`runnel records index FILE`) is used where there is one;
// without it the file is read through once, here. The files must stay as they are.
class IndexedRecordDataset : public Dataset<Tensor> {
 public:
  explicit IndexedRecordDataset(const Paths& paths, Env& env = Env::posix(), SourceSite where = SourceSite::current())
      : Dataset(detail::called_at(where, [&] { return nodes::indexed_records(paths.node(), env); })) {}
};

// Patterns of paths (*, ?, [a-z]): one or several.
class FilePatterns {
 public:
  FilePatterns(const char* pattern) : all_{pattern} {}                            // NOLINT: implicit
  FilePatterns(const std::string& pattern) : all_{pattern} {}                     // NOLINT
  FilePatterns(std::initializer_list<std::string> patterns) : all_(patterns) {}   // NOLINT
  FilePatterns(std::vector<std::string> patterns) : all_(std::move(patterns)) {}  // NOLINT
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

// The paths that fit, in random order unless said otherwise; an Error where there is none.
inline Dataset<Tensor> list_files(const FilePatterns& file_pattern, bool shuffle = true,
                                  std::optional<int64_t> seed = {}, Env& env = Env::posix(),
                                  SourceSite where = SourceSite::current()) {
  return Dataset<Tensor>(
      detail::called_at(where, [&] { return nodes::list_files(file_pattern.all(), shuffle, seed, env); }));
}

}  // namespace runnel::data
