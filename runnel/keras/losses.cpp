#include "runnel/keras/losses.h"

#include <algorithm>
#include <vector>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/graph/name_scope.h"
#include "runnel/keras/named_callable.h"
#include "runnel/op/composed.h"

namespace runnel::keras::losses {
namespace {

struct NamedLoss {
  std::string class_name;
  std::vector<std::string> names;
  LossPtr (*make)(const Config& settings);
};

template <class L>
NamedLoss named(std::vector<std::string> names) {
  return {L::kClassName, std::move(names), [](const Config& settings) -> LossPtr { return L::from_config(settings); }};
}

const std::vector<NamedLoss>& all_losses() {
  static const std::vector<NamedLoss> all = {
      named<SparseCategoricalCrossentropy>({"sparse_categorical_crossentropy"}),
      named<CategoricalCrossentropy>({"categorical_crossentropy"}),
      named<BinaryCrossentropy>({"binary_crossentropy", "bce", "BCE"}),
      named<MeanSquaredError>({"mean_squared_error", "mse", "MSE"}),
      named<MeanAbsoluteError>({"mean_absolute_error", "mae", "MAE"}),
      named<MeanAbsolutePercentageError>({"mean_absolute_percentage_error", "mape", "MAPE"}),
      named<MeanSquaredLogarithmicError>({"mean_squared_logarithmic_error", "msle", "MSLE"}),
      named<Huber>({"huber", "huber_loss"}),
      named<KLDivergence>({"kl_divergence", "kld", "KLD", "kullback_leibler_divergence"}),
      named<Hinge>({"hinge"}),
      named<SquaredHinge>({"squared_hinge"}),
      named<CategoricalHinge>({"categorical_hinge"}),
      named<CosineSimilarity>({"cosine_similarity"}),
      named<Poisson>({"poisson"}),
      named<LogCosh>({"log_cosh", "logcosh"}),
  };
  return all;
}

const NamedLoss* find_loss(const std::string& name) {
  for (const NamedLoss& loss : all_losses()) {
    if (loss.class_name == name || std::ranges::find(loss.names, name) != loss.names.end()) return &loss;
  }
  return nullptr;
}

LossPtr loss_by_name(const std::string& name, const Config& settings) {
  if (const NamedLoss* found = find_loss(name)) return found->make(settings);
  if (LossPtr own = SerializableObjects::make<Loss>(name, settings)) return own;
  if (const auto own = SerializableObjects::make<NamedFunction<PairFunction>>(name, settings)) {
    auto wrapper = std::make_shared<LossFunctionWrapper>(own->function, "auto", name);
    wrapper->description = own->description;
    return wrapper;
  }
  throw invalid_argument("[losses] unknown loss '{}'; there are {} and what register_keras_serializable names", name,
                         fmt::join(names(), ", "));
}

}  // namespace

Loss::Loss(std::string reduction, std::string name, SourceSite where)
    : reduction_(std::move(reduction)), name_(std::move(name)) {
  for (const char* known : {"auto", "sum_over_batch_size", "sum", "none"}) {
    if (reduction_ == known) return;
  }
  throw at_line(invalid_argument("[{}] unknown reduction '{}': auto, sum_over_batch_size, sum or none",
                                 name_.empty() ? "loss" : name_, reduction_),
                where);
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, const Tensor& mask,
                        SourceSite where) {
  const NameScope scope(name_.empty() ? class_name() : name_);
  return composed(where, [&] {
    return compute_weighted_loss(name_.empty() ? class_name() : name_, call(y_true, y_pred), sample_weight, mask,
                                 reduction_);
  });
}

std::string Loss::class_name() const { return class_name_of(typeid(*this)); }

Config Loss::get_config() const { return Config::Map{{"reduction", reduction_}, {"name", name_}}; }

LossFunctionWrapper::LossFunctionWrapper(LossFunction function, std::string reduction, std::string name)
    : Loss(std::move(reduction), std::move(name)), function_(std::move(function)) {}

Tensor LossFunctionWrapper::call(const Tensor& y_true, const Tensor& y_pred) {
  const Matched matched = match_ranks(y_true, y_pred);
  return function_(matched.y_true, matched.y_pred);
}

LossPtr get(const std::string& name, SourceSite where) {
  return composed(where, [&] { return loss_by_name(name, Config::Map{}); });
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const NamedLoss& loss : all_losses()) all.insert(all.end(), loss.names.begin(), loss.names.end());
  return all;
}

LossPtr deserialize(const Config& config, SourceSite where) {
  return composed(where, [&]() -> LossPtr {
    if (config.is_text()) return get(config.as_text());
    return loss_by_name(config["class_name"].as_text(), config["config"]);
  });
}

Config serialize(const Loss& loss) {
  if (const auto* wrapper = dynamic_cast<const LossFunctionWrapper*>(&loss)) {
    if (!wrapper->description.is_null()) return wrapper->description;
  }
  return object_config(serialized_name(typeid(loss), loss.class_name()), loss.get_config().entries());
}

LossFunction find_function(const std::string& name) {
  const NamedLoss* found = find_loss(name);
  if (!found) return {};
  return [loss = found->make(Config::Map{})](const Tensor& y_true, const Tensor& y_pred) {
    return loss->call(y_true, y_pred);
  };
}

}  // namespace runnel::keras::losses
