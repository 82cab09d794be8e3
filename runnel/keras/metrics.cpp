#include "runnel/keras/metrics.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/keras/named_callable.h"
#include "runnel/op/composed.h"

namespace runnel::keras::metrics {
namespace {

struct NamedMetric {
  std::string class_name;
  MetricPtr (*make)(const Config& settings);
};

template <class M>
MetricPtr metric_of(const Config& settings) {
  return Metric::from_base_config<M>(settings);
}

// The value that must be reached has the name of what it is.
template <class M>
MetricPtr curve_point_of(const Config& settings) {
  auto options = metric_options_from_config<CurvePointOptions>(settings);
  for (const char* key : {"specificity", "sensitivity", "recall", "precision"}) {
    if (const Config* value = settings.find(key)) options.value = value->as_double();
  }
  return std::make_shared<M>(options);
}

const std::vector<NamedMetric>& all_metrics() {
  static const std::vector<NamedMetric> all = {
      {"Mean", metric_of<Mean>},
      {"Sum", metric_of<Sum>},
      {"Accuracy", metric_of<Accuracy>},
      {"BinaryAccuracy", metric_of<BinaryAccuracy>},
      {"CategoricalAccuracy", metric_of<CategoricalAccuracy>},
      {"SparseCategoricalAccuracy", metric_of<SparseCategoricalAccuracy>},
      {"TopKCategoricalAccuracy", metric_of<TopKCategoricalAccuracy>},
      {"SparseTopKCategoricalAccuracy", metric_of<SparseTopKCategoricalAccuracy>},
      {"MeanSquaredError", metric_of<MeanSquaredError>},
      {"RootMeanSquaredError", metric_of<RootMeanSquaredError>},
      {"MeanAbsoluteError", metric_of<MeanAbsoluteError>},
      {"MeanAbsolutePercentageError", metric_of<MeanAbsolutePercentageError>},
      {"MeanSquaredLogarithmicError", metric_of<MeanSquaredLogarithmicError>},
      {"CosineSimilarity", metric_of<CosineSimilarity>},
      {"KLDivergence", metric_of<KLDivergence>},
      {"Poisson", metric_of<Poisson>},
      {"LogCoshError", metric_of<LogCoshError>},
      {"Hinge", metric_of<Hinge>},
      {"SquaredHinge", metric_of<SquaredHinge>},
      {"CategoricalHinge", metric_of<CategoricalHinge>},
      {"BinaryCrossentropy", metric_of<BinaryCrossentropy>},
      {"CategoricalCrossentropy", metric_of<CategoricalCrossentropy>},
      {"SparseCategoricalCrossentropy", metric_of<SparseCategoricalCrossentropy>},
      {"TruePositives", metric_of<TruePositives>},
      {"FalsePositives", metric_of<FalsePositives>},
      {"TrueNegatives", metric_of<TrueNegatives>},
      {"FalseNegatives", metric_of<FalseNegatives>},
      {"Precision", metric_of<Precision>},
      {"Recall", metric_of<Recall>},
      {"AUC", metric_of<AUC>},
      {"SensitivityAtSpecificity", curve_point_of<SensitivityAtSpecificity>},
      {"SpecificityAtSensitivity", curve_point_of<SpecificityAtSensitivity>},
      {"PrecisionAtRecall", curve_point_of<PrecisionAtRecall>},
      {"RecallAtPrecision", curve_point_of<RecallAtPrecision>},
      {"FBetaScore", metric_of<FBetaScore>},
      {"F1Score", metric_of<F1Score>},
      {"IoU", metric_of<IoU>},
      {"MeanIoU", metric_of<MeanIoU>},
      {"OneHotIoU", metric_of<OneHotIoU>},
      {"OneHotMeanIoU", metric_of<OneHotMeanIoU>},
      {"BinaryIoU", metric_of<BinaryIoU>},
  };
  return all;
}

const NamedMetric* find_metric(const std::string& class_name) {
  const auto found = std::ranges::find(all_metrics(), class_name, &NamedMetric::class_name);
  return found == all_metrics().end() ? nullptr : &*found;
}

void with_metric_functions(const auto& use) {
  use(accuracy);
  use(binary_accuracy);
  use(categorical_accuracy);
  use(sparse_categorical_accuracy);
  use(top_k_categorical_accuracy);
  use(sparse_top_k_categorical_accuracy);
  use(cosine_similarity);
}

// Functions that are metrics only, or differ from the loss of the same name.
MetricFunction find_metric_function(const std::string& name) {
  MetricFunction found;
  const auto offer = [&]<class F>(const F& function) {
    if (name == F::kName) found = losses::without_line(function);
  };
  with_metric_functions(offer);
  return found ? found : losses::find_function(name);
}

MetricPtr registered_metric(const std::string& name, const Config& settings) {
  if (MetricPtr own = SerializableObjects::make<Metric>(name, settings)) return own;
  const auto function = SerializableObjects::make<NamedFunction<PairFunction>>(name, settings);
  if (!function) return nullptr;
  auto wrapper = std::make_shared<MeanMetricWrapper>(function->function, name);
  wrapper->description = function->description;
  return wrapper;
}

[[noreturn]] void unknown_metric(const std::string& name) {
  std::vector<std::string> names{"acc", "crossentropy", "ce"};  // compile chooses the function
  with_metric_functions([&]<class F>(const F&) { names.emplace_back(F::kName); });
  for (const std::string& loss : losses::names()) {
    if (std::ranges::find(names, loss) == names.end()) names.push_back(loss);
  }
  for (const NamedMetric& metric : all_metrics()) names.push_back(metric.class_name);
  throw invalid_argument("[metrics] unknown metric '{}'; there are {} and what register_keras_serializable names", name,
                         fmt::join(names, ", "));
}

MetricPtr metric_called(const std::string& name) {
  if (const NamedMetric* found = find_metric(name)) return found->make(Config::Map{});
  if (MetricFunction function = find_metric_function(name)) {
    return std::make_shared<MeanMetricWrapper>(std::move(function), name);
  }
  if (MetricPtr own = registered_metric(name, Config::Map{})) return own;
  unknown_metric(name);
}

}  // namespace

MetricPtr get(const std::string& name, SourceSite where) {
  return composed(where, [&] { return metric_called(name); });
}

MetricPtr deserialize(const Config& config, SourceSite where) {
  return composed(where, [&]() -> MetricPtr {
    if (config.is_text()) return get(config.as_text());
    const std::string& class_name = config["class_name"].as_text();
    if (const NamedMetric* found = find_metric(class_name)) return found->make(config["config"]);
    if (MetricPtr own = registered_metric(class_name, config["config"])) return own;
    unknown_metric(class_name);
  });
}

Config serialize(const Metric& metric) {
  if (const auto* wrapper = dynamic_cast<const MeanMetricWrapper*>(&metric)) {
    if (!wrapper->description.is_null()) return wrapper->description;
  }
  return object_config(serialized_name(typeid(metric), metric.class_name()), metric.get_config().entries());
}

}  // namespace runnel::keras::metrics

namespace runnel::keras {
namespace {

// Which of the functions the shapes call for: binary_, categorical_ or sparse_categorical_.
std::string kind_of_labels(const PartialShape& y_true, const PartialShape& y_pred) {
  const auto last = [](const PartialShape& s) { return s.rank() > 0 ? s[s.rank() - 1] : kUnknownDim; };
  if (last(y_pred) == 1) return "binary_";
  const bool numbers = y_true.rank() < y_pred.rank() || (last(y_true) == 1 && last(y_pred) > 1);
  return numbers ? "sparse_categorical_" : "categorical_";
}

MetricPtr metric_by_name(const std::string& name, const PartialShape& y_true, const PartialShape& y_pred) {
  const bool accuracy = name == "accuracy" || name == "acc";
  if (!accuracy && name != "crossentropy" && name != "ce") return metrics::get(name);
  const std::string function = kind_of_labels(y_true, y_pred) + (accuracy ? "accuracy" : "crossentropy");
  return std::make_shared<metrics::MeanMetricWrapper>(metrics::find_metric_function(function), name);
}

}  // namespace

std::function<MetricPtr()> MetricArg::shared(MetricPtr metric) {
  if (!metric) throw invalid_argument("[compile] one of .metrics is an empty pointer");
  metric->refuse_moved_from();
  return [metric = std::move(metric)] { return metric; };
}

MetricPtr resolve_metric(const MetricArg& arg, const PartialShape& y_true, const PartialShape& y_pred,
                         const std::string& prefix) {
  MetricPtr metric = arg.make_ ? arg.make_() : metric_by_name(arg.name_, y_true, y_pred);
  if (!prefix.empty()) metric->set_name(prefix + metric->name());
  return metric;
}

}  // namespace runnel::keras
