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
  Paths(const char* path);                                      // NOLINT: implicit
  Paths(const std::string& path);                               // NOLINT
  Paths(std::initializer_list<std::string> paths);              // NOLINT
  Paths(const std::vector<std::string>& paths);                 // NOLINT
  Paths(const Tensor& paths);                                   // NOLINT: a scalar or a vector
  Paths(const Dataset<Tensor>& paths) : node_(paths.node()) {}  // NOLINT
  const NodePtr& node() const { return node_; }

 private:
  NodePtr node_;
};

// One string per line, without its end.
class TextLineDataset : public Dataset<Tensor> {
 public:
  explicit TextLineDataset(const Paths& paths, const TextLineOptions& options = {}, Env& env = Env::posix())
      : Dataset(nodes::text_lines(paths.node(), options, env)) {}
};
// One string per `record_bytes` bytes.
class FixedLengthRecordDataset : public Dataset<Tensor> {
 public:
  FixedLengthRecordDataset(const Paths& paths, const FixedLengthOptions& options, Env& env = Env::posix())
      : Dataset(nodes::fixed_length_records(paths.node(), options, env)) {}
};
// One string per record of TFRecord files.
class TFRecordDataset : public Dataset<Tensor> {
 public:
  explicit TFRecordDataset(const Paths& paths, const RecordOptions& options = {}, Env& env = Env::posix())
      : Dataset(nodes::records(paths.node(), options, env)) {}
};

// The same of plain files as a source that knows its length and answers by number: shuffles are permutations that hold
// no records, over all files at once. An index beside a file (`runnel records index FILE`) is used where there is one;
// without it the file is read through once, here. The files must stay as they are.
class IndexedRecordDataset : public Dataset<Tensor> {
 public:
  explicit IndexedRecordDataset(const Paths& paths, Env& env = Env::posix())
      : Dataset(nodes::indexed_records(paths.node(), env)) {}
};

// The paths that fit a pattern (*, ?, [a-z]), in random order unless said otherwise; an Error where there is none.
inline Dataset<Tensor> list_files(const std::vector<std::string>& patterns, bool shuffle = true,
                                  std::optional<int64_t> seed = {}, Env& env = Env::posix()) {
  return Dataset<Tensor>(nodes::list_files(patterns, shuffle, seed, env));
}
inline Dataset<Tensor> list_files(const std::string& pattern, bool shuffle = true, std::optional<int64_t> seed = {},
                                  Env& env = Env::posix()) {
  return list_files(std::vector<std::string>{pattern}, shuffle, seed, env);
}

// A scalar for each column. record_defaults gives the dtypes and what stands for empty fields; see io::decode_csv.
RUNNEL_API Dataset<std::vector<Tensor>> csv(const Paths& paths, const std::vector<Tensor>& record_defaults,
                                            const CsvOptions& options = {}, Env& env = Env::posix(),
                                            SourceSite where = SourceSite::current());
}  // namespace runnel::data
