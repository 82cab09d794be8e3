// Which labels and sample weights belong to which output of a model.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/training.h"

namespace runnel::keras {

std::vector<Tensor> Model::Training::by_output(const Model& model, const char* what, const Nest& values,
                                               const Nest& y_pred) {
  const auto is_leaf = [](const Nest& item) { return item.is_leaf(); };
  const bool is_map = y_pred.kind() == NestKind::map;
  const bool is_flat = y_pred.is_leaf() || std::ranges::all_of(y_pred.items(), is_leaf);
  if (values.kind() != NestKind::map || (!is_map && !is_flat)) return nest::flatten(values);
  const std::vector<std::string> names = is_map ? y_pred.keys() : model.output_names(nest::flatten(y_pred).size());
  for (const std::string& key : values.keys()) {
    if (std::ranges::find(names, key) != names.end()) continue;
    throw invalid_argument(
        "[fit] {} are given for output '{}', which model '{}' does not have; there are: {}. The output of a "
        "functional model is named as the layer that gives it",
        what, key, model.name(), fmt::join(names, ", "));
  }
  std::vector<Tensor> all;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool given = std::ranges::find(values.keys(), names[i]) != values.keys().end();
    const size_t parts = is_map ? nest::flatten(y_pred[i]).size() : 1;
    const std::vector<Tensor> found = given ? nest::flatten(values[names[i]]) : std::vector<Tensor>(parts);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

std::vector<Tensor> Model::Training::weights_by_output(const Model& model, const TrainingBatch& batch,
                                                       const Nest& y_pred) {
  const size_t outputs = nest::flatten(y_pred).size();
  if (batch.weights_by_output.size() == 0) return std::vector<Tensor>(outputs, batch.sample_weight);
  std::vector<Tensor> weights = by_output(model, "sample weights", batch.weights_by_output, y_pred);
  if (weights.size() != outputs) {
    throw invalid_argument("[fit] {} sample weights are given for the {} outputs of model '{}': one for each is needed",
                           weights.size(), outputs, model.name());
  }
  return weights;
}

}  // namespace runnel::keras
