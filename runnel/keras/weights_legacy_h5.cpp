// Weights in Keras's older format of HDF5.
#include <algorithm>
#include <map>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/weights_files.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {
namespace {

constexpr char kOwnWeights[] = "top_level_model_weights";
constexpr size_t kNamesBytes = 64512;  // Keras's limit for a list of names in one attribute

std::string joined(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + "/" + name;
}

// A list that is too long for one attribute is cut into several, "names0", "names1", ..., as Keras cuts it: into parts
// of the same length, counted as texts of one width.
void write_names(io::Hdf5Writer& file, const std::string& object, const std::string& name,
                 const std::vector<std::string>& texts) {
  size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  if (width > kNamesBytes) throw invalid_argument("[save_weights] a name in '{}' has {} bytes", object, width);
  const auto longest_part = [&](size_t parts) { return (texts.size() + parts - 1) / parts; };
  size_t parts = 1;
  // The files here keep 16 bytes for each text beside it.
  while (longest_part(parts) * std::max<size_t>(width, 16) > kNamesBytes) ++parts;
  if (parts == 1) return file.text_attribute(object, name, texts);
  auto at = texts.begin();
  for (size_t i = 0; i < parts; ++i) {
    const size_t count = texts.size() / parts + (i < texts.size() % parts ? 1 : 0);
    file.text_attribute(object, fmt::format("{}{}", name, i),
                        std::vector<std::string>(at, at + static_cast<long>(count)));
    at += static_cast<long>(count);
  }
}

std::vector<std::string> read_names(const io::Hdf5Reader& file, const std::string& object, const std::string& name) {
  if (file.has_attribute(object, name)) return file.text_attribute(object, name);
  std::vector<std::string> all;
  for (size_t i = 0; file.has_attribute(object, fmt::format("{}{}", name, i)); ++i) {
    const std::vector<std::string> part = file.text_attribute(object, fmt::format("{}{}", name, i));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Trainable ones first, also of models.
std::vector<Variable> legacy_weights(const Layer& layer) {
  std::vector<Variable> all = layer.trainable_weights();
  const std::vector<Variable> others = layer.non_trainable_weights();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// Those of the model itself, not of its layers.
std::vector<Variable> own_weights(const Model& model) {
  std::vector<const VariableSlot*> of_layers;
  for (const Layer* layer : model.layers()) {
    for (const Variable& v : layer->weights()) of_layers.push_back(&v.slot());
  }
  std::vector<Variable> own = legacy_weights(model);
  std::erase_if(own, [&](const Variable& v) { return std::ranges::find(of_layers, &v.slot()) != of_layers.end(); });
  return own;
}

void write_group(io::Hdf5Writer& file, const std::string& group, const std::vector<Variable>& weights) {
  file.create_group(group);
  std::vector<std::string> names;
  for (const Variable& v : weights) names.push_back(v.name() + ":0");
  write_names(file, group, "weight_names", names);
  for (size_t i = 0; i < weights.size(); ++i) write_value(file, joined(group, names[i]), weights[i]);
}

// A group of the file with what it is for.
class LegacyReader {
 public:
  LegacyReader(const Model& model, const io::Hdf5Reader& file, const LoadWeightsOptions& options)
      : model_(model), file_(file), options_(options) {
    // A file of a whole model has the weights below a group.
    if (!has_layers("") && file.kind("model_weights") == io::Hdf5Kind::group) root_ = "model_weights";
    if (!has_layers(root_)) {
      throw make_error(Code::data_loss,
                       "[load_weights] {}: the attribute layer_names is missing: the file does not have weights in "
                       "Keras's older format; in the newer one it is called *.weights.h5",
                       file.path());
    }
  }

  WeightRows read_in_order() {
    std::vector<std::string> groups;
    for (const std::string& name : read_names(file_, root_, "layer_names")) {
      if (!weight_names(joined(root_, name)).empty()) groups.push_back(name);
    }
    std::vector<const Layer*> layers;
    for (const Layer* layer : model_.layers()) {
      if (!layer->weights().empty()) layers.push_back(layer);
    }
    if (groups.size() != layers.size()) {
      throw invalid_argument(
          "[load_weights] Layer count mismatch when loading weights from file {}. Model expected {} layers, found {} "
          "saved layers: {}",
          file_.path(), layers.size(), groups.size(), fmt::join(groups, ", "));
    }
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string who = fmt::format("layer #{} (named {} in the current model, {} in the save file)", i,
                                          layers[i]->name(), groups[i]);
      take(who, legacy_weights(*layers[i]), joined(root_, groups[i]));
    }
    take_own();
    return set_found();
  }

  WeightRows read_by_name() {
    const std::vector<Layer*> layers = model_.layers();
    size_t number = 0;
    for (const std::string& name : read_names(file_, root_, "layer_names")) {
      const std::string who = fmt::format("layer #{} (named {})", number++, name);
      for (const Layer* layer : layers) {
        if (layer->name() == name) take(who, legacy_weights(*layer), joined(root_, name));
      }
    }
    take_own();
    return set_found();
  }

 private:
  WeightRows set_found() const {
    WeightRows rows = rows_of(model_, file_, found_);  // reads the file, so it comes first
    set_all(found_);
    return rows;
  }
  bool has_layers(const std::string& group) const {
    return file_.has_attribute(group, "layer_names") || file_.has_attribute(group, "layer_names0");
  }
  std::vector<std::string> weight_names(const std::string& group) const {
    return read_names(file_, group, "weight_names");
  }
  void take_own() {
    const std::string group = joined(root_, kOwnWeights);
    if (file_.kind(group) == io::Hdf5Kind::group) take("top-level weights of the model", own_weights(model_), group);
  }

  void take(const std::string& who, const std::vector<Variable>& weights, const std::string& group) {
    const std::vector<std::string> names = weight_names(group);
    if (names.size() != weights.size()) {
      return refuse(fmt::format("Weight count mismatch for {}. It expects {} weight(s). Received {} saved weight(s)",
                                who, weights.size(), names.size()));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string dataset = joined(group, names[i]);
      const Shape shape(file_.info(dataset).shape);
      if (shape == weights[i].shape()) {
        found_.push_back({weights[i], value_for(weights[i], file_, dataset), dataset});
        continue;
      }
      refuse(
          fmt::format("Shape mismatch in {} for weight {}. Weight expects shape {}. Received saved weight {} with "
                      "shape {}",
                      who, weights[i].name(), weights[i].shape().str(), dataset, shape.str()));
    }
  }
  void refuse(const std::string& what) const {
    if (!options_.skip_mismatch) throw invalid_argument("[load_weights] {}: {}", file_.path(), what);
    log_warning("[load_weights] {}: skipped. {}", file_.path(), what);
  }

  const Model& model_;
  const io::Hdf5Reader& file_;
  const LoadWeightsOptions& options_;
  std::string root_;
  WeightValues found_;
};

}  // namespace

void write_legacy_weights(const Model& model, io::Hdf5Writer& file) {
  std::vector<Layer*> layers = model.layers();
  std::vector<std::string> names;
  for (const Layer* layer : layers) names.push_back(layer->name());
  write_names(file, "", "layer_names", names);
  file.text_attribute("", "backend", std::string("tensorflow"));
  file.text_attribute("", "keras_version", std::string("2.15.0"));
  for (const Layer* layer : layers) write_group(file, layer->name(), legacy_weights(*layer));
  write_group(file, kOwnWeights, own_weights(model));
}

WeightRows read_legacy_weights(const Model& model, const io::Hdf5Reader& file, const LoadWeightsOptions& options) {
  LegacyReader reader(model, file, options);
  return options.by_name ? reader.read_by_name() : reader.read_in_order();
}

}  // namespace runnel::keras
