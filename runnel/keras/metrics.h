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
RUNNEL_API MetricPtr get(const std::string& name);
// {"class_name": ..., "config": {...}}, or a name.
RUNNEL_API MetricPtr deserialize(const Config& config);
RUNNEL_API Config serialize(const Metric& metric);

}  // namespace runnel::keras::metrics

namespace runnel::keras {

// A metric given by its name, as an object, or as a plain function (y_true, y_pred) -> Tensor whose mean is taken.
// "accuracy" ("acc") and "crossentropy" ("ce") mean what fits the shapes of labels and predictions: resolve_metric.
class RUNNEL_API MetricArg {
 public:
  MetricArg(const char* name) : name_(name) {}             // NOLINT: implicit, as all below
  MetricArg(std::string name) : name_(std::move(name)) {}  // NOLINT
  template <std::derived_from<Metric> M>
  MetricArg(std::shared_ptr<M> metric) : make_([metric = std::move(metric)] { return metric; }) {}  // NOLINT
  // Written in place, Precision({.top_k = 3}): a metric of the same settings is made for every output.
  template <std::derived_from<Metric> M>
    requires requires(const M& m) { std::make_shared<M>(m.options()); }
  MetricArg(M&& metric)  // NOLINT
      : make_([options = metric.options()] { return std::make_shared<M>(options); }) {}
  template <class F>
    requires std::constructible_from<metrics::MetricFunction, F> && (!std::derived_from<std::decay_t<F>, Metric>)
  MetricArg(F function, std::string name = "function")  // NOLINT
      : make_([function = metrics::MetricFunction(std::move(function)), name = std::move(name)] {
          return std::make_shared<metrics::MeanMetricWrapper>(function, name);
        }) {}

 private:
  friend MetricPtr resolve_metric(const MetricArg&, const PartialShape&, const PartialShape&, const std::string&);
  std::string name_;                 // where it was given by name
  std::function<MetricPtr()> make_;  // otherwise
};

// The metric that is meant for labels and predictions of these shapes; `prefix` (the name of one of several outputs)
// comes before its name.
RUNNEL_API MetricPtr resolve_metric(const MetricArg& arg, const PartialShape& y_true, const PartialShape& y_pred,
                                    const std::string& prefix = "");

}  // namespace runnel::keras
