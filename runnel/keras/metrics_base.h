#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runnel/keras/config.h"
#include "runnel/keras/losses_utils.h"
#include "runnel/keras/serialization.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/trackable.h"

namespace runnel::keras::metrics {

// The entries that the configurations of all metrics begin with.
template <class O>
constexpr auto metric_fields() {
  return field_list(field("name", &O::name, "in logs; by the class when empty"),
                    field("dtype", &O::dtype, "of the variables and the result"));
}
template <class O>
O metric_options_from_config(const Config& config) {
  O options;
  read_fields(options, joined_fields(metric_fields<O>(), O::fields()), config);
  return options;
}

// A measure that is collected over batches in variables. Works eagerly and in functions alike. To make one:
//   struct Correct : keras::Metric {
//     Correct() : Metric("correct") {}
//     void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor&) override {
//       count.assign_add(reduce_sum(metrics::sparse_categorical_accuracy(y_true, y_pred)));
//     }
//     Tensor result() const override { return count; }
//     Variable count = add_weight("count");
//   };
// A metric that is a member of a model is registered with it, as layers are, or handed to track():
//   keras::metrics::Mean loss_tracker{this, "loss_tracker", {.name = "loss"}};
// The model then saves it and starts it anew with every epoch (Model::metrics).
class RUNNEL_API Metric : public Trackable {
 public:
  // Without a name: that of the class, in snake_case, with a number where it is taken.
  explicit Metric(std::string name = "", DType dtype = DType::float32) : name_(std::move(name)), dtype_(dtype) {}
  // A member of `parent`, which its checkpoints call `attribute`.
  Metric(Trackable* parent, const std::string& attribute, std::string name = "", DType dtype = DType::float32)
      : Metric(std::move(name), dtype) {
    register_with(parent, attribute);
  }
  // A copy counts in the same variables, as variables themselves are handles.
  Metric(const Metric& other);
  Metric(Metric&& other) noexcept;
  Metric& operator=(const Metric&) = delete;

  // Takes a batch into account. Mean and Sum read the arguments as (values, sample_weight).
  virtual void update_state(const Tensor& y_true, const Tensor& y_pred = {}, const Tensor& sample_weight = {}) = 0;
  virtual Tensor result() const = 0;
  virtual void reset_state();  // every variable becomes zero
  // update_state, then the result of everything since the last reset.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred = {}, const Tensor& sample_weight = {},
                    SourceSite where = SourceSite::current());

  const std::string& name() const;
  void set_name(std::string name) { name_ = std::move(name); }
  DType dtype() const { return dtype_; }
  const std::vector<Variable>& variables() const { return variables_; }
  virtual std::string class_name() const;  // the name of the C++ class unless a metric says otherwise
  virtual Config get_config() const;       // name, dtype, then the settings of the metric
  void refuse_moved_from() const;          // an Error for a metric whose content another object has by now
  using SerializedAs = Metric;             // see register_keras_serializable
  // A metric without a from_config of its own: by its Options, by the constructor it has from Metric, else by that
  // without arguments.
  template <class T>
  static std::shared_ptr<T> from_base_config(const Config& config) {
    const Config* name = config.find("name");
    const Config* dtype = config.find("dtype");
    if constexpr (requires { requires std::constructible_from<T, typename T::Options>; }) {
      return std::make_shared<T>(metric_options_from_config<typename T::Options>(config));
    } else if constexpr (std::constructible_from<T, std::string, DType>) {
      return std::make_shared<T>(name ? name->as_text() : "",
                                 dtype ? dtype_from_name(dtype->as_text()) : DType::float32);
    } else {
      static_assert(std::default_initializable<T>, "the metric needs a static from_config(const Config&)");
      const auto made = std::make_shared<T>();
      if (name) made->set_name(name->as_text());
      return made;
    }
  }

 protected:
  void register_with(Trackable* parent, const std::string& attribute);
  // A variable of zeros in the dtype of the metric.
  Variable add_weight(const std::string& name, const Shape& shape = {});
  // An Error naming the metric unless there are predictions; they come back in its dtype.
  Tensor predictions(const Tensor& y_pred) const;

 private:
  mutable std::string name_;  // chosen when it is first asked for
  DType dtype_;
  std::vector<Variable> variables_;
  bool moved_from_ = false;
};
using MetricPtr = std::shared_ptr<Metric>;

// Metrics whose settings are a struct with `name`, `dtype` and a list of fields(). kClassName is Keras's; kName too,
// where the name does not follow from the class.
template <class Self, class OptionsType>
class MetricOf : public Metric {
 public:
  using Options = OptionsType;
  explicit MetricOf(Options options = {})
      : Metric(first_name(options.name), options.dtype), options_(std::move(options)) {}
  MetricOf(Trackable* parent, const std::string& attribute, Options options = {}) : MetricOf(std::move(options)) {
    register_with(parent, attribute);
  }

  const Options& options() const { return options_; }
  std::string class_name() const override { return Self::kClassName; }
  Config get_config() const override { return with_options(Metric::get_config(), options_); }

 protected:
  Options options_;

 private:
  static std::string first_name(const std::string& given) {
    if constexpr (requires { Self::kName; }) {
      return given.empty() ? Self::kName : given;
    } else {
      return given;
    }
  }
};

struct MetricOptions {
  std::string name = {};
  DType dtype = DType::float32;
  static constexpr auto fields() { return field_list(); }
};

// The sum of values, weighted, and of their weights.
struct RUNNEL_API WeightedMean {
  Variable total;
  Variable count;
  void add(const std::string& who, const Tensor& values, const Tensor& sample_weight) const;
  Tensor result() const;  // 0 before the first value
};

// The mean of all values; `sample_weight` weights them.
class RUNNEL_API Mean : public MetricOf<Mean, MetricOptions> {
 public:
  static constexpr const char* kClassName = "Mean";
  static constexpr const char* kName = "mean";
  explicit Mean(MetricOptions options = {}) : MetricOf(std::move(options)) {}
  explicit Mean(const char* name) : Mean(MetricOptions{.name = name}) {}
  Mean(Trackable* parent, const std::string& attribute, MetricOptions options = {})
      : MetricOf(parent, attribute, std::move(options)) {}
  void update_state(const Tensor& values, const Tensor& sample_weight = {}, const Tensor& = {}) override;
  Tensor result() const override { return mean_.result(); }

 private:
  WeightedMean mean_{add_weight("total"), add_weight("count")};
};

class RUNNEL_API Sum : public MetricOf<Sum, MetricOptions> {
 public:
  static constexpr const char* kClassName = "Sum";
  static constexpr const char* kName = "sum";
  explicit Sum(MetricOptions options = {}) : MetricOf(std::move(options)) {}
  explicit Sum(const char* name) : Sum(MetricOptions{.name = name}) {}
  Sum(Trackable* parent, const std::string& attribute, MetricOptions options = {})
      : MetricOf(parent, attribute, std::move(options)) {}
  void update_state(const Tensor& values, const Tensor& sample_weight = {}, const Tensor& = {}) override;
  Tensor result() const override { return total_.value(); }

 private:
  Variable total_ = add_weight("total");
};

using MetricFunction = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

// The mean of what a function gives per sample.
class RUNNEL_API MeanMetricWrapper : public Metric {
 public:
  explicit MeanMetricWrapper(MetricFunction function, std::string name = "", DType dtype = DType::float32);
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override;
  Tensor result() const override { return mean_.result(); }
  std::string class_name() const override { return "MeanMetricWrapper"; }

  Config description;  // of a registered function: what `serialize` writes

 private:
  MetricFunction function_;
  WeightedMean mean_{add_weight("total"), add_weight("count")};
};

// The same as a class of its own: Self::values(y_true, y_pred) is the function.
template <class Self, class OptionsType>
class MeanMetricOf : public MetricOf<Self, OptionsType> {
 public:
  explicit MeanMetricOf(OptionsType options = {}) : MetricOf<Self, OptionsType>(std::move(options)) {
    this->track_empty("_fn_kwargs");
  }
  MeanMetricOf(Trackable* parent, const std::string& attribute, OptionsType options = {})
      : MeanMetricOf(std::move(options)) {
    parent->track(attribute, *this);
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) override {
    const losses::Matched matched = losses::match_ranks(y_true, this->predictions(y_pred));
    mean_.add(this->name(), static_cast<const Self&>(*this).values(matched.y_true, matched.y_pred), sample_weight);
  }
  Tensor result() const override { return mean_.result(); }

 private:
  WeightedMean mean_{this->add_weight("total"), this->add_weight("count")};
};

}  // namespace runnel::keras::metrics

namespace runnel::keras {
using metrics::Metric;
using metrics::MetricPtr;
}  // namespace runnel::keras
