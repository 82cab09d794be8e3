// Records of TFRecord files by number.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/data/iterator.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/io/record_index.h"

namespace runnel::data {
namespace {

struct Files {
  std::vector<io::IndexedRecords> files;
  std::vector<int64_t> ends;  // of each, counted over all

  int64_t size() const { return ends.empty() ? 0 : ends.back(); }
  Bytes at(int64_t i) const {
    const auto file = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
    const int64_t first = file == 0 ? 0 : ends[file - 1];
    const ByteSpan record = files[file][static_cast<uint64_t>(i - first)];
    return Bytes(files[file].owner(), {reinterpret_cast<const char*>(record.data()), record.size()});
  }
};

class IndexedRecordsNode : public IndexedNode {
 public:
  explicit IndexedRecordsNode(std::shared_ptr<const Files> files) : files_(std::move(files)) {}
  std::string name() const override { return "IndexedRecords"; }
  std::string details() const override { return fmt::format("{}", files_->size()); }
  ElementSpec element_spec() const override { return scalar_spec(DType::string); }
  int64_t cardinality() const override { return files_->size(); }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context&) const override {
    struct View : Indexed {
      std::shared_ptr<const Files> files;
      int64_t size() const override { return files->size(); }
      void compute(int64_t i, Item& out) const override {
        const Tensor t = Tensor::empty(DType::string, {});
        *t.mutable_data<Bytes>() = files->at(i);
        put(t, out);
      }
      void collect(std::span<const int64_t> indices, Item& out) const override {
        const Tensor t = Tensor::empty(DType::string, {static_cast<int64_t>(indices.size())});
        for (size_t k = 0; k < indices.size(); ++k) t.mutable_data<Bytes>()[k] = files->at(indices[k]);
        put(t, out);
      }
      static void put(const Tensor& t, Item& out) {
        out.structure = detail::fixed_structure<Tensor>();
        out.tensors.assign(1, t);
      }
    };
    auto view = std::make_shared<View>();
    view->files = files_;
    return view;
  }

 private:
  std::shared_ptr<const Files> files_;
};

}  // namespace

NodePtr nodes::indexed_records(const NodePtr& paths, Env& env) {
  if (paths->cardinality() == INFINITE_CARDINALITY)
    throw invalid_argument("[IndexedRecordDataset] the dataset of paths is infinite");
  auto files = std::make_shared<Files>();
  AnyIterator it(paths);
  for (Item path; it.next(path);) {
    files->files.emplace_back(path.tensors.at(0).item<std::string>(), env, SourceSite());
    files->ends.push_back(files->size() + static_cast<int64_t>(files->files.back().size()));
  }
  return std::make_shared<IndexedRecordsNode>(std::move(files));
}

}  // namespace runnel::data
