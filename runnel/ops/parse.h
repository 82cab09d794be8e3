#pragma once

// Serialized Examples into tensors, as tf.io does it.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runnel/base/asked.h"
#include "runnel/base/moved_from.h"
#include "runnel/op/operand.h"
#include "runnel/tensor/composite.h"
#include "runnel/tensor/nest.h"

namespace runnel::io {

// What to expect of a feature. Dtypes are float32, int64 and string, as in the messages.

// The same shape in every record. Where the feature is missing, default_value stands in (one value, or one of the
// whole shape); without a default that is an error.
struct FixedLenFeature {
  std::vector<int64_t> shape;
  DType dtype = DType::float32;
  Tensor default_value = {};
};
// Any number of values: gives a SparseTensor.
struct VarLenFeature {
  DType dtype = DType::float32;
};
// Any number of steps of a fixed shape: dense, shorter records padded with default_value (0 or "" if there is none).
// Where the feature is missing, there are no steps if allow_missing, else it is an error.
struct FixedLenSequenceFeature {
  std::vector<int64_t> shape;
  DType dtype = DType::float32;
  bool allow_missing = false;
  Tensor default_value = {};
};
// How the values of a ragged feature are cut into rows: by numbers that stand in another feature of the record, `key`,
// or evenly.
struct RowSplits {  // where rows begin, and at last where the last one ends: 0 first
  std::string key;
};
struct RowLengths {
  std::string key;
};
struct RowStarts {  // 0 first
  std::string key;
};
struct RowLimits {  // where rows end
  std::string key;
};
struct ValueRowIds {  // the row of each value, never falling
  std::string key;
};
struct UniformRowLength {
  int64_t length = 1;
};
using RaggedPartition = std::variant<RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength>;
// Any number of values: gives a RaggedTensor, of a single record a vector. They are read from `value_key` if that is
// not empty, else from the feature's own key. Each partition adds a dimension, the first one the outermost:
//   {"points", RaggedFeature{.value_key = "xy", .partitions = {RowLengths{"lines"}, UniformRowLength{2}}}}
// gives [line, point, 2] of a single record and [record, line, point, 2] of a batch. Partitions that do not fit the
// values are an error in any case, whether or not `validate` asks for it as in TensorFlow.
struct RaggedFeature {
  DType dtype = DType::float32;
  std::string value_key = {};
  std::vector<RaggedPartition> partitions = {};
  DType row_splits_dtype = DType::int32;
  bool validate = false;
};
using FeatureSpec = std::variant<FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, RaggedFeature>;

// Features by name, checked and prepared: make it once and use it for every batch.
//   const io::ExampleSpec spec{{"image_raw", io::FixedLenFeature{{}, DType::string}},
//                              {"label", io::FixedLenFeature{{}, int64}}};
class RUNNEL_API ExampleSpec {
 public:
  ExampleSpec(std::initializer_list<std::pair<const std::string, FeatureSpec>> features,  // NOLINT: implicit
              CallSite where = CallSite(SourceSite::current()));
  ExampleSpec(const std::map<std::string, FeatureSpec>& features,  // NOLINT: implicit
              CallSite where = CallSite(SourceSite::current()));

  struct Plan;
  const Plan& plan() const { return *shared(); }
  const std::shared_ptr<const Plan>& shared() const {
    if (!plan_) throw_moved_from("ExampleSpec");
    return plan_;
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

// What parse_example gives: a tensor (or sparse or ragged tensor) for each name.
class RUNNEL_API ParsedExample {
 public:
  ParsedExample(std::shared_ptr<const ExampleSpec::Plan> plan, std::vector<Tensor> outputs, bool single);

  // An Error tells what there is when the name is unknown or the feature of another kind.
  const Tensor& operator[](const AskedName& name) const;  // FixedLen, FixedLenSequence; Ragged that is a plain tensor
  Tensor& operator[](const AskedName& name);              // the same, to be given another value
  SparseTensor sparse(const AskedName& name) const;       // VarLen
  RaggedTensor ragged(const AskedName& name) const;       // Ragged of a batch, or of one record with partitions
  Nest nest() const;                                      // all, as a map
  operator Nest() const { return nest(); }                // NOLINT: for functions and datasets

 private:
  std::shared_ptr<const ExampleSpec::Plan> plan_;
  std::vector<Tensor> outputs_;
  std::vector<Nest> ragged_;  // for each ragged feature a Tensor or RaggedTensor
  bool single_;
};

// A vector of serialized Examples; every result has the batch as its first dimension. `names` stand in errors.
RUNNEL_API ParsedExample parse_example(const Operand& serialized, const ExampleSpec& features,
                                       const Tensor& names = {});
// One serialized Example, a scalar.
RUNNEL_API ParsedExample parse_single_example(const Operand& serialized, const ExampleSpec& features,
                                              const std::string& name = {});

// A SequenceExample: features of its context, and lists of features (FixedLenSequence, VarLen, Ragged).
// Of a batch, lengths has the number of steps of each FixedLenSequence feature, and shorter ones are padded.
struct ParsedSequence {
  Nest context;
  Nest sequences;
  Nest lengths;
};
RUNNEL_API ParsedSequence parse_single_sequence_example(const Operand& serialized, const ExampleSpec& context_features,
                                                        const ExampleSpec& sequence_features,
                                                        const std::string& name = {});
RUNNEL_API ParsedSequence parse_sequence_example(const Operand& serialized, const ExampleSpec& context_features,
                                                 const ExampleSpec& sequence_features, const Tensor& names = {});

// Examples in protobuf's JSON form as serialized Examples; any shape.
RUNNEL_API Tensor decode_json_example(const Operand& json_examples);

}  // namespace runnel::io
