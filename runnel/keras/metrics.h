#pragma once

#include "runnel/keras/metrics_base.h"
#include "runnel/keras/metrics_confusion.h"
#include "runnel/keras/metrics_curve.h"
#include "runnel/keras/metrics_fbeta.h"
#include "runnel/keras/metrics_iou.h"
#include "runnel/keras/metrics_mean.h"

namespace runnel::keras::metrics {

// A class ("AUC", "SparseCategoricalAccuracy") or the mean of a function ("mse", "categorical_accuracy"), which then
// has that name; also one of your own that is registered. An Error that lists the names there are.
RUNNEL_API MetricPtr get(const std::string& name, SourceSite where = SourceSite::current());
// {"class_name": ..., "config": {...}}, or a name.
RUNNEL_API MetricPtr deserialize(const Config& config, SourceSite where = SourceSite::current());
RUNNEL_API Config serialize(const Metric& metric);

}  // namespace runnel::keras::metrics

namespace runnel::keras {

// A metric given by its name, as an object, or as a function (y_true, y_pred) -> Tensor whose mean is taken: one of
// metrics::, whose name it then has, or your own: {f, "hits"}, named<hits>; a bare lambda is called "<lambda>".
// "accuracy" ("acc") and "crossentropy" ("ce") mean what fits the shapes of labels and predictions: resolve_metric.
class RUNNEL_API MetricArg {
 public:
  MetricArg(const char* name) : name_(name) {}             // NOLINT: implicit, as all below
  MetricArg(std::string name) : name_(std::move(name)) {}  // NOLINT
  template <std::derived_from<Metric> M>
  MetricArg(std::shared_ptr<M> metric) : make_(shared(std::move(metric))) {}  // NOLINT
  // Written in place, Precision({.top_k = 3}): where it has options, a metric like it is made for every output.
  template <std::derived_from<Metric> M>
  MetricArg(M&& metric) {  // NOLINT
    if constexpr (requires { std::make_shared<M>(metric.options()); }) {
      make_ = [options = metric.options()] { return std::make_shared<M>(options); };
    } else {
      make_ = [moved = std::make_shared<M>(std::forward<M>(metric))] { return moved; };
    }
  }
  // A variable: the model counts in the same state.
  template <std::derived_from<Metric> M>
  MetricArg(M& metric)  // NOLINT
      : make_([copy = std::make_shared<std::remove_const_t<M>>(metric)] { return copy; }) {}
  template <class F>
    requires std::constructible_from<metrics::MetricFunction, F> && (!std::derived_from<std::decay_t<F>, Metric>)
  MetricArg(F function, std::string name = function_name<F>())  // NOLINT
      : make_([function = losses::without_line(function), name = std::move(name)] {
          auto made = std::make_shared<metrics::MeanMetricWrapper>(function, name);
          if constexpr (losses::HasName<F>) made->description = Config(std::string(F::kName));
          return made;
        }) {}

 private:
  template <class F>
  static std::string function_name() {
    if constexpr (losses::HasName<F>) {
      return std::string(F::kName);
    } else {
      return "<lambda>";
    }
  }
  // An Error for an empty pointer and for a metric that was moved from.
  static std::function<MetricPtr()> shared(MetricPtr metric);
  friend MetricPtr resolve_metric(const MetricArg&, const PartialShape&, const PartialShape&, const std::string&);
  std::string name_;                 // where it was given by name
  std::function<MetricPtr()> make_;  // otherwise
};

// The metric that is meant for labels and predictions of these shapes; `prefix` (the name of one of several outputs)
// comes before its name.
RUNNEL_API MetricPtr resolve_metric(const MetricArg& arg, const PartialShape& y_true, const PartialShape& y_pred,
                                    const std::string& prefix = "");

}  // namespace runnel::keras
