// Weights in the format of .weights.h5. Keras walks the attributes of its objects there; the edges of the object graph
// are those attributes.
#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/metrics_base.h"
#include "runnel/keras/optimizer.h"
#include "runnel/keras/weights_files.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {
namespace {

// An object that has variables of its own, and where they stand in the file: at path/vars/0, path/vars/1, ...
struct WeightsPlace {
  std::string path;
  Trackable* object;
  std::vector<Variable> variables;
  std::string group() const { return path.empty() ? "vars" : path + "/vars"; }
};

bool has_own_place(const Trackable* object) {
  return dynamic_cast<const Layer*>(object) || dynamic_cast<const Optimizer*>(object) ||
         dynamic_cast<const Metric*>(object);
}

std::string class_of(const Trackable& object) {
  if (const auto* layer = dynamic_cast<const Layer*>(&object)) return layer->class_name();
  if (const auto* metric = dynamic_cast<const Metric*>(&object)) return metric->class_name();
  return dynamic_cast<const Optimizer&>(object).class_name();
}

// How Keras names places; it has changed.
enum class PathRules {
  keras_2_15,  // attributes from the last name to the first
  keras_2_14,  // from the first to the last; the layers of models that connect layers come first of all
  keras_2_12,  // likewise; and a list counts what it has met before
};

class PlaceWalk {
 public:
  PlaceWalk(Model& model, PathRules rules) : rules_(rules) { visit(model, ""); }
  std::vector<WeightsPlace> places;

 private:
  using Parts = std::vector<Trackable*>;
  // An attribute with one object, or with a list or dict of them.
  struct Attribute {
    bool is_list;
    Parts parts;
  };
  using Attributes = std::map<std::string, Attribute>;

  void visit(Trackable& object, const std::string& path) {
    if (!visited_.insert(&object.node()).second) return;
    places.push_back({path, &object, own_variables(object)});
    // What is met again stays where it was met first.
    const Attributes all = attributes(object);
    if (rules_ == PathRules::keras_2_15) {
      for (const auto& [name, attribute] : std::views::reverse(all)) visit_attribute(name, attribute, path);
    } else {
      for (const auto& [name, attribute] : all) visit_attribute(name, attribute, path);
    }
  }
  void visit_attribute(const std::string& name, const Attribute& attribute, const std::string& path) {
    const std::string below = path.empty() ? name : path + "/" + name;
    if (attribute.is_list) {
      visit_list(attribute.parts, below);
    } else {
      visit(*attribute.parts[0], below);
    }
  }

  // Named by class, for names of layers may differ from run to run: dense, dense_1, ...
  void visit_list(const Parts& parts, const std::string& path) {
    std::map<std::string, int> used;
    for (Trackable* part : parts) {
      if (rules_ != PathRules::keras_2_12 && visited_.contains(&part->node())) continue;
      std::string name = to_snake_case(class_of(*part));
      const int number = used[name]++;
      if (number > 0) name += fmt::format("_{}", number);
      visit(*part, path + "/" + name);
    }
  }

  Attributes attributes(Trackable& object) const {
    Attributes all;
    for (const Trackable::Edge& edge : object.edges()) {
      if (has_own_place(edge.object)) {
        all[edge.name] = {false, {edge.object}};
      } else if (dynamic_cast<TrackableList*>(edge.object) || dynamic_cast<TrackableDict*>(edge.object)) {
        all[edge.name] = {true, parts_of(edge.object->edges())};
      }
    }
    auto* const model = dynamic_cast<Model*>(&object);
    if (!model) return all;
    const std::vector<Layer*> layers = model->layers();
    all["layers"] = {true, {layers.begin(), layers.end()}};
    const std::vector<Metric*> metrics = model->metrics();
    all["metrics"] = {true, {metrics.begin(), metrics.end()}};
    if (model->compiled()) all["optimizer"] = {false, {&model->optimizer()}};
    if (rules_ != PathRules::keras_2_15 && model->is_functional()) {
      std::vector<Trackable::Edge> numbered = model->children();  // layer_with_weights-0, layer-0, ...
      std::erase_if(numbered, [](const Trackable::Edge& edge) { return !edge.name.starts_with("layer"); });
      all["_layer_checkpoint_dependencies"] = {true, parts_of(numbered)};
    }
    return all;
  }
  static Parts parts_of(const std::vector<Trackable::Edge>& edges) {
    Parts parts;
    for (const Trackable::Edge& edge : edges) {
      if (has_own_place(edge.object)) parts.push_back(edge.object);
    }
    return parts;
  }

  static std::vector<Variable> own_variables(Trackable& object) {
    if (const auto* metric = dynamic_cast<const Metric*>(&object)) return metric->variables();
    if (const auto* optimizer = dynamic_cast<const Optimizer*>(&object)) return optimizer->variables();
    std::vector<Variable> own;
    std::set<const Trackable*> met;
    collect(object, own, met);
    std::ranges::stable_partition(own, [](const Variable& v) { return v.trainable(); });
    return own;
  }
  // Those of an object and of the lists in it.
  static void collect(const Trackable& object, std::vector<Variable>& out, std::set<const Trackable*>& met) {
    if (!met.insert(&object).second) return;
    for (const Trackable::Edge& edge : object.edges()) {
      if (auto* slot = dynamic_cast<VariableSlot*>(edge.object)) {
        if (met.insert(slot).second) out.push_back(Variable::from_handle(edge.handle));
      } else if (!has_own_place(edge.object) && edge.object->holds_weights()) {
        collect(*edge.object, out, met);
      }
    }
  }

  const PathRules rules_;
  std::set<const Trackable*> visited_;
};

class ObjectWeightsReader {
 public:
  ObjectWeightsReader(Model& model, const io::Hdf5Reader& file, const LoadWeightsOptions& options)
      : model_(model), file_(file), options_(options) {
    if (file.kind("vars") == io::Hdf5Kind::none) {
      throw make_error(Code::data_loss,
                       "[load_weights] {}: there is no `vars` in it: the file does not have weights in the format of "
                       ".weights.h5; those of Keras's older format are loaded by a path that ends in .h5 alone",
                       file.path());
    }
    places_ = PlaceWalk(model, rules_of_file()).places;
  }

  WeightRows read() {
    for (const WeightsPlace& place : places_) {
      try {
        take(place);
      } catch (const Error& e) {
        if (!options_.skip_mismatch) throw e.reworded(fmt::format("[load_weights] {}: {}", file_.path(), e.what()));
        log_warning("[load_weights] {}: Could not load weights in object '{}'. Skipping object. {}", file_.path(),
                    place.path, e.what());
      }
    }
    WeightRows rows = rows_of(model_, file_, found_);  // reads the file, so it comes first
    set_all(found_);
    return rows;
  }

 private:
  size_t saved_count(const WeightsPlace& place) const {
    return file_.kind(place.group()) == io::Hdf5Kind::group ? file_.children(place.group()).size() : 0;
  }
  // Those by which all layers find their weights; today's if there are none.
  PathRules rules_of_file() const {
    for (const PathRules rules : {PathRules::keras_2_15, PathRules::keras_2_14, PathRules::keras_2_12}) {
      const std::vector<WeightsPlace> places = PlaceWalk(model_, rules).places;
      const bool all_fit = std::ranges::all_of(places, [&](const WeightsPlace& place) {
        return !dynamic_cast<const Layer*>(place.object) || saved_count(place) == place.variables.size();
      });
      if (all_fit) return rules;
    }
    return PathRules::keras_2_15;
  }

  void take(const WeightsPlace& place) {
    const std::string group = place.group();
    const size_t count = saved_count(place);
    if (count != place.variables.size() && !is_optional(place, count)) {
      const auto* layer = dynamic_cast<const Layer*>(place.object);
      std::vector<std::string> names;
      for (const Variable& v : place.variables) names.push_back(v.name());
      throw invalid_argument(
          "{} '{}' expected {} variables, but received {} variables during loading (in '{}'). Expected: [{}]{}",
          layer ? "Layer" : "Metric", layer ? layer->name() : place.path, names.size(), count, group,
          fmt::join(names, ", "), layer && !layer->built() ? ". It is not built: call the model once before" : "");
    }
    if (count != place.variables.size()) return;
    WeightValues values;
    for (size_t i = 0; i < count; ++i) {
      const std::string dataset = fmt::format("{}/{}", group, i);
      values.push_back({place.variables[i], value_for(place.variables[i], file_, dataset), dataset});
    }
    found_.insert(found_.end(), values.begin(), values.end());
  }
  // The state of an optimizer that does not fit is left out, as Keras does. Metrics begin anew with every epoch.
  bool is_optional(const WeightsPlace& place, size_t count) const {
    if (const auto* optimizer = dynamic_cast<const Optimizer*>(place.object)) {
      if (count > 0) {
        log_warning(
            "[load_weights] {}: Skipping variable loading for optimizer '{}', because it has {} variables whereas the "
            "saved optimizer has {} variables.{}",
            file_.path(), optimizer->name(), place.variables.size(), count,
            place.variables.size() <= 1 ? " This is likely because the optimizer has not been called/built yet." : "");
      }
      return true;
    }
    return count == 0 && dynamic_cast<const Metric*>(place.object);
  }

  Model& model_;
  const io::Hdf5Reader& file_;
  const LoadWeightsOptions& options_;
  std::vector<WeightsPlace> places_;
  WeightValues found_;
};

}  // namespace

void write_object_weights(Model& model, io::Hdf5Writer& file) {
  const PlaceWalk walk(model, PathRules::keras_2_15);
  std::set<const VariableSlot*> written;
  for (const WeightsPlace& place : walk.places) {
    file.create_group(place.group());
    for (size_t i = 0; i < place.variables.size(); ++i) {
      write_value(file, fmt::format("{}/{}", place.group(), i), place.variables[i]);
      written.insert(&place.variables[i].slot());
    }
  }
  for (const Variable& v : model.weights()) {
    if (written.contains(&v.slot())) continue;
    throw make_error(
        Code::unimplemented,
        "[save_weights] {}: weight '{}' stands where the format of .weights.h5 does not reach (a list in a "
        "list of a layer). Save it in TensorFlow's format: a path without an ending",
        "model", v.name());
  }
}

WeightRows read_object_weights(Model& model, const io::Hdf5Reader& file, const LoadWeightsOptions& options) {
  return ObjectWeightsReader(model, file, options).read();
}

}  // namespace runnel::keras
