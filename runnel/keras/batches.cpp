#include "runnel/keras/batches.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/sort.h"

namespace runnel::keras {
namespace {

Nest weight_nest(const Tensor& weight) { return weight.defined() ? Nest(weight) : Nest(); }

// Does a stage of the pipeline make batches, with none after it that takes them apart?
bool makes_batches(const data::DatasetNode& node) {
  static const std::set<std::string> kBatching{"Batch",       "ParallelBatch", "PaddedBatch",
                                               "RaggedBatch", "Rebatch",       "BucketBySequenceLength"};
  const std::string name = node.name();
  if (kBatching.contains(name)) return true;
  if (name == "Unbatch") return false;
  return std::ranges::any_of(node.inputs(), [](const data::NodePtr& input) { return makes_batches(*input); });
}

// A batch that is missing shows in a dimension that is missing.
bool speaks_of_shapes(const Error& e) {
  const std::string text = e.what();
  const std::vector<const char*> words{"shape", "dimension", "rank", "size", "axis"};
  return std::ranges::any_of(words, [&](const char* word) { return text.find(word) != std::string::npos; });
}

}  // namespace

data::AnyDataset batches_of(const SampleData& data, const BatchPlan& plan) {
  if (data.batches) return data.batches->prefetch(2, SourceSite());
  if (plan.batch_size <= 0)
    throw invalid_argument("[{}] batch_size must be positive, got {}", plan.who, plan.batch_size);
  std::vector<Nest> parts{data.x};
  const bool has_labels = !nest::flatten(data.y).empty();
  if (has_labels) parts.push_back(data.y);
  if (data.sample_weight.defined()) {
    if (!has_labels) throw invalid_argument("[{}] sample_weight is given, but no labels", plan.who);
    parts.emplace_back(data.sample_weight);
  }
  const int64_t count = sample_count(plan.who, data.x);
  check_same_counts({{"x", data.x}, {"y", data.y}, {"sample_weight", weight_nest(data.sample_weight)}});
  if (count == 0) throw invalid_argument("[{}] the data has no samples", plan.who);
  return composed(SourceSite(), [&] {  // errors name the line of fit
    data::AnyDataset samples = data::AnyDataset::from_tensor_slices(Nest::tuple(std::move(parts)));
    if (plan.shuffle) samples = samples.shuffle(count);
    return samples.batch(plan.batch_size).prefetch(2);
  });
}

TrainingBatch unpack_batch(const char* who, const Nest& element) {
  if (element.kind() == NestKind::tuple && (element.size() == 0 || element.size() > 3)) {
    throw invalid_argument("[{}] an element of the dataset must be x, (x, y) or (x, y, sample_weight); got {} parts",
                           who, element.size());
  }
  std::string shapes;
  bool single = false;
  for (const Tensor& t : nest::flatten(element)) {
    shapes += fmt::format("{}{}{}", shapes.empty() ? "" : ", ", dtype_name(t.dtype()), t.partial_shape().str());
    single = single || t.partial_shape().rank() == 0;
  }
  if (single) {
    throw invalid_argument(
        "[{}] the dataset gives single samples, not batches: an element is {}. Group them: dataset.batch(32)", who,
        shapes);
  }
  if (element.kind() != NestKind::tuple) return {element, {}, {}};
  TrainingBatch batch{element[0], {}, {}};
  if (element.size() > 1) batch.y = element[1];
  if (element.size() < 3) return batch;
  if (element[2].is_leaf()) {
    batch.sample_weight = element[2].leaf();
  } else {
    batch.weights_by_output = element[2];
  }
  return batch;
}

Error with_batch_advice(const Error& e, const data::AnyDataset& dataset) {
  if (e.code() != Code::invalid_argument || !speaks_of_shapes(e) || makes_batches(*dataset.node())) return e;
  const std::vector<TensorSpec> parts = nest::flatten(dataset.element_spec());
  std::string shapes;
  std::set<int64_t> sizes;
  for (const TensorSpec& part : parts) {
    if (!part.shape.has_rank() || part.shape.rank() == 0 || part.shape[0] == kUnknownDim) return e;
    sizes.insert(part.shape[0]);
    shapes += (shapes.empty() ? "" : ", ") + part.str();
  }
  // The parts of a batch are equally long. One part alone, a vector, is a sample rather than a batch of numbers.
  const bool equally_long = parts.size() > 1 ? sizes.size() == 1 : parts.empty() || parts[0].shape.rank() > 1;
  if (equally_long) return e;
  return e.reworded(
      fmt::format("{}\n  the dataset seems to give single samples, not batches: an element is {}. Group them: "
                  "dataset.batch(32)",
                  e.what(), shapes));
}

void refuse_batch_size(const char* who, const char* option, const std::optional<int64_t>& batch_size) {
  if (!batch_size) return;
  throw invalid_argument(
      "[{}] The `{}` argument must not be specified for the given input type: a dataset comes in batches of its own, "
      "dataset.batch({})",
      who, option, *batch_size);
}

void refuse_sample_weight(const char* who, const Tensor& sample_weight) {
  if (!sample_weight.defined()) return;
  throw invalid_argument(
      "[{}] `sample_weight` argument is not supported when using dataset as input: let its elements be (x, y, "
      "sample_weight)",
      who);
}

void refuse_endless(const char* who, const data::AnyDataset& batches, const char* limit) {
  if (batches.cardinality() != data::INFINITE_CARDINALITY) return;
  throw invalid_argument("[{}] the dataset never ends (repeat() without a count?): give .{}, the number of batches",
                         who, limit);
}

void check_same_counts(const std::vector<std::pair<const char*, Nest>>& data) {
  std::set<int64_t> counts;
  std::string sizes;
  for (const auto& [name, part] : data) {
    std::vector<int64_t> of_part;
    for (const Tensor& t : nest::flatten(part)) of_part.push_back(t.shape().rank() > 0 ? t.shape()[0] : 1);
    if (of_part.empty()) continue;
    counts.insert(of_part.begin(), of_part.end());
    sizes += fmt::format("\n  {} sizes: {}", name, fmt::join(of_part, ", "));
  }
  if (counts.size() > 1) {
    throw invalid_argument("Data cardinality is ambiguous:{}\nMake sure all arrays contain the same number of samples.",
                           sizes);
  }
}

int64_t sample_count(const char* who, const Nest& samples) {
  const std::vector<Tensor> leaves = nest::flatten(samples);
  if (leaves.empty() || leaves[0].shape().rank() == 0) {
    throw invalid_argument("[{}] the data must be tensors whose first dimension counts the samples", who);
  }
  return leaves[0].shape()[0];
}

Nest sample_range(const Nest& samples, int64_t begin, int64_t end) {
  return nest::map_structure([&](const Tensor& t) { return t(runnel::slice(begin, end)); }, samples);
}

Tensor class_weight_table(const std::map<int64_t, double>& class_weight) {
  if (class_weight.empty()) return {};
  std::vector<float> table;
  for (const auto& [number, weight] : class_weight) {
    if (number != static_cast<int64_t>(table.size())) {
      throw invalid_argument(
          "[fit] Expected `class_weight` to have the classes from 0 to one less than their number, each with a weight; "
          "class {} is followed by {}",
          static_cast<int64_t>(table.size()) - 1, number);
    }
    table.push_back(static_cast<float>(weight));
  }
  return Tensor::of(table);
}

Tensor weights_by_class(const Tensor& table, const Nest& y, const Tensor& sample_weight) {
  if (!table.defined()) return sample_weight;
  if (!y.is_leaf()) throw invalid_argument("[fit] class_weight needs a model with one output");
  Tensor classes = y.leaf();
  const Shape& shape = classes.shape();
  if (shape.rank() > 1) classes = shape[shape.rank() - 1] == 1 ? squeeze(classes, {-1}) : argmax(classes, -1);
  if (is_float(classes.dtype())) classes = round(classes);
  classes = cast(classes, DType::int64);
  for (const int64_t label : classes.to_vector<int64_t>()) {
    if (label >= 0 && label < table.num_elements()) continue;
    throw invalid_argument("[fit] class_weight has the classes 0 to {}, but a label is {}: give every class a weight",
                           table.num_elements() - 1, label);
  }
  const Tensor weights = gather(table, classes);
  return sample_weight.defined() ? weights * cast(sample_weight, DType::float32) : weights;
}

}  // namespace runnel::keras
