#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runnel/keras/config.h"
#include "runnel/keras/serialization.h"
#include "runnel/op/operand.h"

namespace runnel::keras::optimizers::schedules {

// A learning rate that depends on the number of the step: what an optimizer takes in place of a number. One of your
// own is a class with operator(), and get_config() if it is to be written down.
class RUNNEL_API LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  // The rate, a float32 scalar, at a step (an integer tensor that starts at 0). Made of ops: optimizers call it once
  // while a function is traced.
  virtual Tensor operator()(const Operand& step) const = 0;
  virtual std::string class_name() const { return class_name_of(typeid(*this)); }
  using SerializedAs = LearningRateSchedule;  // see register_keras_serializable
  template <class T>
  static std::shared_ptr<T> from_base_config(const Config&) {
    static_assert(std::default_initializable<T>, "the schedule needs a static from_config(const Config&)");
    return std::make_shared<T>();
  }
  virtual Config get_config() const;  // an Error unless a class says more
};
using SchedulePtr = std::shared_ptr<const LearningRateSchedule>;

// {"class_name": "ExponentialDecay", "config": {...}} and back.
RUNNEL_API Config serialize(const LearningRateSchedule& schedule);
RUNNEL_API SchedulePtr deserialize(const Config& config, SourceSite where = SourceSite::current());

template <class Self, class OptionsType>
class ScheduleOf : public LearningRateSchedule {
 public:
  using Options = OptionsType;
  explicit ScheduleOf(Options options) : options_(std::move(options)) {}
  const Options& options() const { return options_; }
  std::string class_name() const override { return Self::kClassName; }
  Config get_config() const override {
    Config config = options_to_config(options_);
    config.set("name", options_.name.empty() ? Config() : Config(options_.name));
    return config;
  }
  static std::shared_ptr<Self> from_config(const Config& config) {
    return std::make_shared<Self>(options_from_config<Options>(config));
  }

 protected:
  Options options_;
};

// What most schedules are told first, and all of them somewhere.
template <class O>
constexpr auto decay_fields() {
  return field_list(field("initial_learning_rate", &O::initial_learning_rate, "the rate at step 0"),
                    field("decay_steps", &O::decay_steps, "over how many steps"));
}
template <class O>
constexpr auto name_fields() {
  return field_list(field("name", &O::name, "the name of the schedule"));
}

struct ExponentialDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 1;
  double decay_rate = 1;
  bool staircase = false;
  std::string name = {};
  static constexpr auto fields() {
    using O = ExponentialDecayOptions;
    return joined_fields(decay_fields<O>(),
                         field_list(field("decay_rate", &O::decay_rate, "how much the rate falls in decay_steps"),
                                    field("staircase", &O::staircase, "in steps, not evenly")),
                         name_fields<O>());
  }
};
// initial * decay_rate ^ (step / decay_steps); with staircase the exponent is rounded down.
class RUNNEL_API ExponentialDecay : public ScheduleOf<ExponentialDecay, ExponentialDecayOptions> {
 public:
  static constexpr const char* kClassName = "ExponentialDecay";
  using ScheduleOf::ScheduleOf;
  Tensor operator()(const Operand& step) const override;
};

struct PiecewiseConstantDecayOptions {
  std::vector<double> boundaries = {};
  std::vector<double> values = {};
  std::string name = {};
  static constexpr auto fields() {
    using O = PiecewiseConstantDecayOptions;
    return joined_fields(field_list(field("boundaries", &O::boundaries, "the last steps of all values but the last"),
                                    field("values", &O::values, "one more")),
                         name_fields<O>());
  }
};
// values[0] up to and with step boundaries[0], values[1] up to and with boundaries[1], ..., the last after all.
class RUNNEL_API PiecewiseConstantDecay : public ScheduleOf<PiecewiseConstantDecay, PiecewiseConstantDecayOptions> {
 public:
  static constexpr const char* kClassName = "PiecewiseConstantDecay";
  explicit PiecewiseConstantDecay(Options options, SourceSite where = SourceSite::current());
  Tensor operator()(const Operand& step) const override;
};

struct PolynomialDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 1;
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;
  std::string name = {};
  static constexpr auto fields() {
    using O = PolynomialDecayOptions;
    return joined_fields(decay_fields<O>(),
                         field_list(field("end_learning_rate", &O::end_learning_rate, "the rate at the end"),
                                    field("power", &O::power, "of the polynomial"),
                                    field("cycle", &O::cycle, "begin again after decay_steps")),
                         name_fields<O>());
  }
};
// (initial - end) * (1 - step / decay_steps) ^ power + end. After decay_steps it stays at the end, or with cycle
// decays over the next multiple of decay_steps.
class RUNNEL_API PolynomialDecay : public ScheduleOf<PolynomialDecay, PolynomialDecayOptions> {
 public:
  static constexpr const char* kClassName = "PolynomialDecay";
  using ScheduleOf::ScheduleOf;
  Tensor operator()(const Operand& step) const override;
};

using InverseTimeDecayOptions = ExponentialDecayOptions;
// initial / (1 + decay_rate * step / decay_steps); with staircase the quotient is rounded down.
class RUNNEL_API InverseTimeDecay : public ScheduleOf<InverseTimeDecay, InverseTimeDecayOptions> {
 public:
  static constexpr const char* kClassName = "InverseTimeDecay";
  using ScheduleOf::ScheduleOf;
  Tensor operator()(const Operand& step) const override;
};

struct CosineDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 1;
  double alpha = 0;
  std::string name = {};
  std::optional<double> warmup_target = {};
  double warmup_steps = 0;
  static constexpr auto fields() {
    using O = CosineDecayOptions;
    return joined_fields(
        decay_fields<O>(), field_list(field("alpha", &O::alpha, "the share of the rate that is left at the end")),
        name_fields<O>(),
        field_list(field("warmup_target", &O::warmup_target, "the rate at the end of the warmup"),
                   field("warmup_steps", &O::warmup_steps, "over how many steps the rate rises first")));
  }
};
// Half a cosine wave from the initial rate down to alpha times it, over decay_steps. With warmup_target the rate first
// rises from the initial one to the target in a straight line over warmup_steps, and decays from there.
class RUNNEL_API CosineDecay : public ScheduleOf<CosineDecay, CosineDecayOptions> {
 public:
  static constexpr const char* kClassName = "CosineDecay";
  using ScheduleOf::ScheduleOf;
  Tensor operator()(const Operand& step) const override;
};

struct CosineDecayRestartsOptions {
  double initial_learning_rate = 0;
  double first_decay_steps = 1;
  double t_mul = 2;
  double m_mul = 1;
  double alpha = 0;
  std::string name = {};
  static constexpr auto fields() {
    using O = CosineDecayRestartsOptions;
    return field_list(field("initial_learning_rate", &O::initial_learning_rate, "the rate at step 0"),
                      field("first_decay_steps", &O::first_decay_steps, "of the first decay"),
                      field("t_mul", &O::t_mul, "each decay is so many times as long as the one before"),
                      field("m_mul", &O::m_mul, "and starts from so many times its rate"),
                      field("alpha", &O::alpha, "the share of the rate that is left at the end"),
                      field("name", &O::name, "the name of the schedule"));
  }
};
// Cosine decays one after the other, each t_mul times as long as the one before and starting from m_mul times its rate.
class RUNNEL_API CosineDecayRestarts : public ScheduleOf<CosineDecayRestarts, CosineDecayRestartsOptions> {
 public:
  static constexpr const char* kClassName = "CosineDecayRestarts";
  using ScheduleOf::ScheduleOf;
  Tensor operator()(const Operand& step) const override;
};

}  // namespace runnel::keras::optimizers::schedules
