#include <algorithm>
#include <map>

#include "runnel/base/format.h"
#include "runnel/keras/model.h"
#include "runnel/keras/sequential.h"
#include "runnel/op/composed.h"

namespace runnel::keras {
namespace {

// [layer, number of the call, number of the output]: how Keras names a tensor of a model.
class TensorNames {
 public:
  explicit TensorNames(const FunctionalGraph& graph) {
    for (const FunctionalNodePtr& node : graph.nodes()) calls_[node->layer.get()].push_back(node.get());
  }
  Config::List name(const Tensor& t, const Model& model) const {
    const DescribedTensor d = described(t);
    if (!d.node) {
      throw make_error(Code::unimplemented,
                       "[keras] a constant tensor goes into a layer of model '{}': that cannot be written down",
                       model.name());
    }
    const auto& calls = calls_.at(d.node->layer.get());
    const auto call = std::find(calls.begin(), calls.end(), d.node.get()) - calls.begin();
    return {d.node->layer->name(), static_cast<int64_t>(call), static_cast<int64_t>(d.index)};
  }
  const std::vector<const FunctionalNode*>& calls(const Layer* layer) const { return calls_.at(layer); }

 private:
  std::map<const Layer*, std::vector<const FunctionalNode*>> calls_;
};

// A map stays one, for its keys are the names by which a model is called.
Config names_of(const Nest& tensors, const TensorNames& names, const Model& model) {
  const auto is_leaf = [](const Nest& item) { return item.is_leaf(); };
  if (tensors.kind() == NestKind::map && std::all_of(tensors.items().begin(), tensors.items().end(), is_leaf)) {
    Config::Map named;
    for (size_t i = 0; i < tensors.size(); ++i) {
      named.emplace_back(tensors.keys()[i], names.name(tensors[i].leaf(), model));
    }
    return named;
  }
  Config::List all;
  for (const Tensor& t : nest::flatten(tensors)) all.emplace_back(names.name(t, model));
  return all;
}

// The tensors made so far, by layer and call.
using MadeTensors = std::map<std::string, std::vector<std::vector<Tensor>>>;

const Tensor* find_made(const MadeTensors& made, const Config& name) {
  const auto found = made.find(name.items()[0].as_text());
  const auto call = static_cast<size_t>(name.items()[1].as_int());
  if (found == made.end() || call >= found->second.size()) return nullptr;
  return &found->second[call].at(static_cast<size_t>(name.items()[2].as_int()));
}

Nest tensors_named(const MadeTensors& made, const Config& names) {
  const auto tensor_named = [&](const Config& name) -> const Tensor& {
    const Tensor* t = find_made(made, name);
    if (!t) throw invalid_argument("[keras] the configuration names a tensor it does not make: {}", name.to_json());
    return *t;
  };
  if (names.is_map()) {
    std::map<std::string, Tensor> by_key;
    for (const auto& [key, name] : names.entries()) by_key.emplace(key, tensor_named(name));
    return by_key;
  }
  std::vector<Tensor> all;
  for (const Config& name : names.items()) all.push_back(tensor_named(name));
  return all.size() == 1 ? Nest(all[0]) : Nest(all);
}

// Keras 3 writes another key.
PartialShape batch_input_shape_of(const Config& entry) {
  const Config& settings = entry["config"];
  const Config* shape = settings.find("batch_input_shape");
  if (shape && shape->is_list() && !shape->items().empty()) return shape->as_shape();
  const Config* name = settings.find("name");
  throw invalid_argument("[keras] the InputLayer '{}' of the configuration has no \"batch_input_shape\": [null, ...]{}",
                         name ? name->as_text() : "",
                         settings.find("batch_shape")
                             ? "; it has \"batch_shape\", as Keras 3 writes it: write the model with Keras 2"
                             : "");
}

// A call that waits for its inputs.
struct PendingCall {
  LayerPtr layer;
  Config inputs;
};

}  // namespace

Config Model::get_config() const {
  const FunctionalGraph& g = graph();
  const TensorNames names(g);
  Config::List layers;
  for (const LayerPtr& layer : g.layers()) {
    Config entry = layer_to_config(*layer);
    entry.set("name", layer->name());
    Config::List calls;
    for (const FunctionalNode* node : names.calls(layer.get())) {
      if (nest::flatten(node->inputs).empty()) continue;
      if (node->args.mask.defined() || node->args.attention_mask.defined() || !node->args.initial_state.empty()) {
        throw make_error(
            Code::unimplemented,
            "[keras] a constant mask or state goes with a call of layer '{}' of model '{}': that cannot be "
            "written down",
            layer->name(), name());
      }
      Config::List call;
      for (const Tensor& t : nest::flatten(node->inputs)) {
        Config::List input = names.name(t, *this);
        Config::Map settings;
        if (node->args.training) settings.emplace_back("training", *node->args.training);
        if (node->args.use_causal_mask) settings.emplace_back("use_causal_mask", true);
        input.emplace_back(std::move(settings));
        call.emplace_back(std::move(input));
      }
      calls.emplace_back(std::move(call));
    }
    entry.set("inbound_nodes", std::move(calls));
    layers.push_back(std::move(entry));
  }
  return Config::Map{{"name", name()},
                     {"trainable", trainable()},
                     {"layers", std::move(layers)},
                     {"input_layers", names_of(g.inputs(), names, *this)},
                     {"output_layers", names_of(g.outputs(), names, *this)}};
}

std::shared_ptr<Model> Model::from_config(const Config& config, SourceSite where) {
  return composed(where, [&] {
    MadeTensors made;
    std::vector<PendingCall> waiting;
    for (const Config& entry : config["layers"].items()) {
      if (entry["class_name"].as_text() == InputLayer::kClassName) {
        const Config& settings = entry["config"];
        const PartialShape shape = batch_input_shape_of(entry);
        const Tensor x = Input(PartialShape(std::span(shape.begin() + 1, shape.end())),
                               {.batch_size = shape[0],
                                .name = entry["name"].as_text(),
                                .dtype = Policy::from_config(settings["dtype"]).compute_dtype()});
        made[entry["name"].as_text()].push_back({x});
        continue;
      }
      const LayerPtr layer = layer_from_config(entry);
      for (const Config& call : entry["inbound_nodes"].items()) waiting.push_back({layer, call});
    }
    while (!waiting.empty()) {
      const size_t before = waiting.size();
      std::vector<PendingCall> still;
      for (PendingCall& call : waiting) {
        const auto& inputs = call.inputs.items();
        const bool ready =
            std::all_of(inputs.begin(), inputs.end(), [&](const Config& c) { return find_made(made, c); });
        // Calls of one layer keep their order: their numbers are its.
        const bool first =
            std::none_of(still.begin(), still.end(), [&](const auto& s) { return s.layer == call.layer; });
        if (!ready || !first) {
          still.push_back(std::move(call));
          continue;
        }
        CallArgs args;
        const Config& told = inputs[0].items()[3];
        if (const Config* training = told.find("training")) args.training = training->as_bool();
        if (const Config* causal = told.find("use_causal_mask")) args.use_causal_mask = causal->as_bool();
        made[call.layer->name()].push_back(nest::flatten((*call.layer)(tensors_named(made, call.inputs), args)));
      }
      waiting = std::move(still);
      if (waiting.size() == before) {
        throw invalid_argument("[keras] the configuration of model '{}' has a circle of layers at '{}'",
                               config["name"].as_text(), waiting[0].layer->name());
      }
    }
    return std::make_shared<Model>(tensors_named(made, config["input_layers"]),
                                   tensors_named(made, config["output_layers"]),
                                   LayerOptions{.name = config["name"].as_text()});
  });
}

std::string Model::to_json(int indent, SourceSite where) const {
  return composed(where, [&] {
    Config config = layer_to_config(*this);
    config.set("keras_version", "2.15.0");
    config.set("backend", "tensorflow");
    return config.to_json(indent);
  });
}

namespace {

ModelPtr model_from_config(const Config& config) {
  const std::string& kind = config["class_name"].as_text();
  if (kind == "Sequential") return Sequential::from_config(config["config"]);
  if (kind == "Functional" || kind == "Model") return Model::from_config(config["config"]);
  if (SerializableObjects::find(typeid(Layer), kind)) {
    if (ModelPtr model = std::dynamic_pointer_cast<Model>(layer_from_config(config))) return model;
  }
  throw make_error(Code::unimplemented,
                   "[keras] a model of class '{}' cannot be made from a configuration: a class of your own needs "
                   "get_config, from_config and register_keras_serializable",
                   kind);
}

}  // namespace

ModelPtr model_from_json(const std::string& json, SourceSite where) {
  return composed(where, [&] { return model_from_config(Config::from_json(json)); });
}

ModelPtr clone_model(const Model& model, SourceSite where) {
  return composed(where, [&] { return model_from_json(model.to_json()); });
}

}  // namespace runnel::keras
