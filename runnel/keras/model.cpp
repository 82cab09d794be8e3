#include "runnel/keras/model.h"

#include <algorithm>
#include <iostream>

#include "runnel/base/format.h"
#include "runnel/keras/training.h"
#include "runnel/op/composed.h"

namespace runnel::keras {

Model::Model(LayerOptions options) : Layer(std::move(options)) {}
Model::Model(Layer* parent, const std::string& attribute, LayerOptions options)
    : Layer(parent, attribute, std::move(options)) {}
Model::Model(const NestArg& inputs, const NestArg& outputs, LayerOptions options, SourceSite where)
    : Layer(std::move(options)) {
  composed(where, [&] { set_graph(std::make_unique<FunctionalGraph>(inputs, outputs)); });
}
Model::~Model() = default;

std::string Model::class_name() const { return graph_ ? "Functional" : Layer::class_name(); }

// Steps and predictions that are traced refer to the old object: they are made anew.
Model::Model(Model&& other) noexcept(false)
    : Layer(std::move(other)),
      stop_training(other.stop_training),
      graph_(std::move(other.graph_)),
      training_(std::move(other.training_)) {
  forget_training_functions();
}

Model& Model::operator=(Model&& other) noexcept(false) {
  if (this == &other) return *this;
  Layer::operator=(static_cast<Layer&&>(other));
  stop_training = other.stop_training;
  graph_ = std::move(other.graph_);
  training_ = std::move(other.training_);
  forget_training_functions();
  return *this;
}

void Model::set_graph(std::unique_ptr<FunctionalGraph> graph) {
  graph_ = std::move(graph);
  set_names_weights(false);
  set_autocast(false);
  mark_built();
  settle_children();
}

void Model::forget_graph() {
  graph_ = nullptr;
  mark_unbuilt();
}

std::vector<Trackable::Edge> Model::children() const {
  std::vector<Edge> all;
  size_t number = 0, with_weights = 0;
  for (Layer* layer : numbered_layers()) {
    if (any_weights_in(*layer)) {
      all.push_back({fmt::format("layer_with_weights-{}", with_weights++), layer, nullptr, {}});
    }
    all.push_back({fmt::format("layer-{}", number++), layer, nullptr, {}});
  }
  all.insert(all.end(), edges().begin(), edges().end());
  return all;
}

std::vector<Layer*> Model::numbered_layers() const {
  std::vector<Layer*> all;
  if (!graph_) return all;
  for (const LayerPtr& layer : graph_->layers()) all.push_back(layer.get());
  return all;
}

const FunctionalGraph& Model::graph(SourceSite where) const {
  return composed(where, [&]() -> const FunctionalGraph& {
    refuse_moved_from();
    if (!graph_) {
      throw make_error(Code::failed_precondition,
                       "[{}] model '{}' is a class of its own: only functional and sequential models know how their "
                       "layers are connected",
                       class_name(), name());
    }
    return *graph_;
  });
}

Nest Model::call(const Nest& inputs, const CallArgs& args) {
  return graph_ ? graph_->run(inputs, args) : Layer::call(inputs, args);
}

Layer& Model::get_layer(const std::string& name, SourceSite where) const {
  composed(where, [&] { refuse_moved_from(); });
  std::string names;
  for (Layer* layer : sublayers()) {
    if (layer->name() == name) return *layer;
    names += (names.empty() ? "" : ", ") + layer->name();
  }
  throw make_error(Code::not_found, "[{}] model '{}' has no layer '{}'; there are: {}{}", class_name(), this->name(),
                   name, names, user_line(where).at());
}

Layer& Model::get_layer(size_t index, SourceSite where) const {
  composed(where, [&] { refuse_moved_from(); });
  const std::vector<Layer*> all = sublayers();
  if (index >= all.size()) {
    throw make_error(Code::out_of_range, "[{}] model '{}' has {} layers, asked for number {}{}", class_name(), name(),
                     all.size(), index, user_line(where).at());
  }
  return *all[index];
}

void Model::build_for_shape(const PartialShape& input, SourceSite where) {
  composed(where, [&] { compute_output_shape(input); });
}

void Model::summary(SourceSite where) const { summary(std::cout, where); }

std::vector<std::string> Model::output_names(size_t count) const {
  std::vector<std::string> names;
  if (graph_) {
    // Layers with several outputs, and those called several times, give names that Keras tells apart by numbers.
    for (const Tensor& t : nest::flatten(graph_->outputs())) {
      const std::string& layer = described(t).node->layer->name();
      std::string name = layer;
      for (int i = 1; std::ranges::find(names, name) != names.end(); ++i) name = fmt::format("{}_{}", layer, i);
      names.push_back(name);
    }
  } else {
    for (size_t i = 0; i < count; ++i) names.push_back(fmt::format("output_{}", i + 1));
  }
  return names;
}

}  // namespace runnel::keras
