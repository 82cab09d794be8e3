#pragma once

// Internal: the attributes of the parsing ops, and what an ExampleSpec is turned into.
#include <map>

#include "runnel/op/attr.h"
#include "runnel/ops/parse.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

inline constexpr uint32_t kFeatureTypes = Types<float, int64_t, Bytes>::mask;  // what Examples hold
inline constexpr uint32_t kSplitTypes = index_types.mask;

struct ParseExampleAttrs {
  std::vector<DType> Tdense;
  int64_t num_sparse = 0;
  std::vector<DType> sparse_types;
  std::vector<DType> ragged_value_types;
  std::vector<DType> ragged_split_types;
  std::vector<PartialShape> dense_shapes;
  static constexpr auto fields() {
    using A = ParseExampleAttrs;
    constexpr AttrRule values{.required = true, .types = kFeatureTypes};
    return field_list(
        field("Tdense", &A::Tdense, values), field("num_sparse", &A::num_sparse, {.required = true, .minimum = 0}),
        field("sparse_types", &A::sparse_types, values), field("ragged_value_types", &A::ragged_value_types, values),
        field("ragged_split_types", &A::ragged_split_types, {.required = true, .types = kSplitTypes}),
        field("dense_shapes", &A::dense_shapes, {.required = true}));
  }
};

struct ParseSequenceAttrs {
  int64_t Ncontext_sparse = 0;
  std::vector<DType> Tcontext_dense;
  std::vector<DType> context_sparse_types;
  std::vector<DType> context_ragged_value_types;
  std::vector<DType> context_ragged_split_types;
  std::vector<PartialShape> context_dense_shapes;
  int64_t Nfeature_list_sparse = 0;
  int64_t Nfeature_list_dense = 0;
  std::vector<DType> feature_list_dense_types;
  std::vector<DType> feature_list_sparse_types;
  std::vector<DType> feature_list_ragged_value_types;
  std::vector<DType> feature_list_ragged_split_types;
  std::vector<PartialShape> feature_list_dense_shapes;
  static constexpr auto fields() {
    using A = ParseSequenceAttrs;
    return field_list(
        field("Ncontext_sparse", &A::Ncontext_sparse, {.minimum = 0}),
        field("Tcontext_dense", &A::Tcontext_dense, {.types = kFeatureTypes}),
        field("context_sparse_types", &A::context_sparse_types, {.types = kFeatureTypes}),
        field("context_ragged_value_types", &A::context_ragged_value_types, {.types = kFeatureTypes}),
        field("context_ragged_split_types", &A::context_ragged_split_types, {.types = kSplitTypes}),
        field("context_dense_shapes", &A::context_dense_shapes),
        field("Nfeature_list_sparse", &A::Nfeature_list_sparse, {.minimum = 0}),
        field("Nfeature_list_dense", &A::Nfeature_list_dense, {.minimum = 0}),
        field("feature_list_dense_types", &A::feature_list_dense_types, {.types = kFeatureTypes}),
        field("feature_list_sparse_types", &A::feature_list_sparse_types, {.types = kFeatureTypes}),
        field("feature_list_ragged_value_types", &A::feature_list_ragged_value_types, {.types = kFeatureTypes}),
        field("feature_list_ragged_split_types", &A::feature_list_ragged_split_types, {.types = kSplitTypes}),
        field("feature_list_dense_shapes", &A::feature_list_dense_shapes));
  }
};

enum class FeatureForm : uint8_t { dense, sparse, ragged };

struct io::ExampleSpec::Plan {
  struct Entry {
    std::string name;
    FeatureForm form;
    size_t index;                         // among those of its form
    std::vector<size_t> partitions = {};  // of a ragged one, where the numbers of each are among the ragged features
  };
  std::vector<Entry> entries;  // by name
  std::map<std::string, FeatureSpec> features;

  // As inputs and attributes of ParseExampleV2.
  Tensor sparse_keys, dense_keys, ragged_keys;
  std::vector<Tensor> dense_defaults;
  ParseExampleAttrs attrs;
  std::string missing_not_allowed;  // a FixedLenSequence feature without allow_missing, if there is one

  const Entry& find(std::string_view name) const;
};

// The outputs of one Examples' parse in the order of the op: indices, values, shapes; dense; ragged values, splits.
struct ExampleOutputs {
  size_t sparse, dense, ragged;
  size_t indices(size_t i) const { return i; }
  size_t values(size_t i) const { return sparse + i; }
  size_t shapes(size_t i) const { return 2 * sparse + i; }
  size_t dense_at(size_t i) const { return 3 * sparse + i; }
  size_t ragged_values(size_t i) const { return 3 * sparse + dense + i; }
  size_t ragged_splits(size_t i) const { return 3 * sparse + dense + ragged + i; }
  size_t all() const { return 3 * sparse + dense + 2 * ragged; }
};

class InferContext;
class KernelContext;

// The part that ParseExampleV2 and the context of ParseSequenceExampleV2 share: reads `records` by the keys (strings of
// inputs) and attributes and fills outputs [0, all()).
struct ExampleInputs {
  int sparse_keys, dense_keys, ragged_keys, dense_defaults;  // numbers of inputs
};
void infer_example_outputs(InferContext& c, const ParseExampleAttrs& a, const ExampleInputs& in, int first_output = 0);
struct RecordNames;
void parse_examples(KernelContext& c, const ParseExampleAttrs& a, const ExampleInputs& in, const Bytes* records,
                    int64_t n, bool single, const RecordNames& names);

// A ragged feature's values, cut by its partitions. `rows` says which values belong to each record (or step), the
// inputs that come with a key likewise.
struct RaggedValues {
  Tensor values, rows;
};
struct PartitionedValues {
  Tensor flat;
  std::vector<Tensor> splits;  // outermost first
  Tensor rows;                 // which rows of the outermost partition belong to each record
};
PartitionedValues partitioned(const std::string& name, const io::RaggedFeature& feature, const RaggedValues& values,
                              const std::vector<RaggedValues>& partitions);

// [offset of the first row's values, ...]: row splits of int32 or int64 from counts.
Tensor row_splits_of(const std::vector<int64_t>& counts, DType dtype);

}  // namespace runnel
