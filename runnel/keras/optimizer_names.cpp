// Optimizers by name and from their descriptions.
#include <algorithm>
#include <cctype>

#include "runnel/base/format.h"
#include "runnel/keras/loss_scale_optimizer.h"
#include "runnel/keras/named_callable.h"
#include "runnel/keras/optimizers.h"
#include "runnel/keras/optimizers_recent.h"
#include "runnel/op/composed.h"

namespace runnel::keras::optimizers {
namespace {

using OptimizerFactory = OptimizerPtr (*)(const Config&);

template <class O>
std::pair<const char*, OptimizerFactory> optimizer_entry() {
  return {O::kClassName, [](const Config& config) -> OptimizerPtr { return O::from_config(config); }};
}

const std::vector<std::pair<const char*, OptimizerFactory>>& optimizer_factories() {
  static const std::vector<std::pair<const char*, OptimizerFactory>> all{
      optimizer_entry<SGD>(),     optimizer_entry<Adam>(),      optimizer_entry<AdamW>(),
      optimizer_entry<RMSprop>(), optimizer_entry<Adagrad>(),   optimizer_entry<Adadelta>(),
      optimizer_entry<Adamax>(),  optimizer_entry<Nadam>(),     optimizer_entry<Ftrl>(),
      optimizer_entry<Lion>(),    optimizer_entry<Adafactor>(), optimizer_entry<mixed_precision::LossScaleOptimizer>()};
  return all;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

OptimizerPtr get(const std::string& name, SourceSite where) {
  return composed(where, [&] { return deserialize(object_config(name, {})); });
}

Config serialize(const Optimizer& optimizer) {
  return object_config(serialized_name(typeid(optimizer), optimizer.class_name()), optimizer.get_config().entries());
}

OptimizerPtr deserialize(const Config& config, SourceSite where) {
  return composed(where, [&]() -> OptimizerPtr {
    const std::string& name = config["class_name"].as_text();
    std::vector<const char*> names;
    for (const auto& [class_name, make] : optimizer_factories()) {
      if (lower_case(class_name) == lower_case(name)) return make(config["config"]);
      names.push_back(class_name);
    }
    if (OptimizerPtr own = SerializableObjects::make<Optimizer>(name, config["config"])) return own;
    throw make_error(Code::not_found,
                     "[keras] no optimizer is called '{}'; there are {} and what register_keras_serializable names",
                     name, fmt::join(names, ", "));
  });
}

}  // namespace runnel::keras::optimizers
