#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runnel/autodiff/tape.h"
#include "runnel/keras/activations.h"
#include "runnel/keras/schedules.h"
#include "runnel/keras/serialization.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/trackable.h"

namespace runnel::keras {

using GradientAndVariable = std::pair<Gradient, Variable>;
// The constraint of a variable, if it has one: Layer::constraint_of.
using ConstraintLookup = std::function<const Constraint*(const Variable&)>;

// A number, a schedule, or a variable that others change.
class RUNNEL_API LearningRate {
 public:
  using Schedule = optimizers::schedules::LearningRateSchedule;
  static constexpr const char* kTypeName = "float, Schedule or Variable";  // in listings of settings

  LearningRate(double value = 0.001) : value_(value) {}            // NOLINT: implicit, as all below
  LearningRate(const Variable& variable) : variable_(variable) {}  // NOLINT
  template <std::derived_from<Schedule> S>
  LearningRate(S schedule) : schedule_(std::make_shared<const S>(std::move(schedule))) {}  // NOLINT
  template <std::derived_from<Schedule> S>
  LearningRate(std::shared_ptr<S> schedule) : schedule_(std::move(schedule)) {}  // NOLINT

  double value() const { return value_; }
  const Variable& variable() const { return variable_; }
  const std::shared_ptr<const Schedule>& schedule() const { return schedule_; }
  Config config() const;
  static LearningRate from_config(const Config& config);

 private:
  double value_ = 0;
  Variable variable_;
  std::shared_ptr<const Schedule> schedule_;
};

// The settings that all optimizers have beside weight_decay and name, whose places differ. A macro, for designated
// initializers do not reach into the base of a struct.
#define RUNNEL_OPTIMIZER_OPTIONS(default_overwrite_frequency) \
  std::optional<double> clipnorm = {};                        \
  std::optional<double> clipvalue = {};                       \
  std::optional<double> global_clipnorm = {};                 \
  bool use_ema = false;                                       \
  double ema_momentum = 0.99;                                 \
  std::optional<int64_t> ema_overwrite_frequency = default_overwrite_frequency

// The same as entries of a configuration, in Keras's order.
template <class O>
constexpr auto optimizer_fields() {
  return field_list(
      field("name", &O::name, "the name of the optimizer"),
      field("weight_decay", &O::weight_decay,
            "before a step every variable loses this times the learning rate of itself"),
      field("clipnorm", &O::clipnorm, "gradients are scaled down to this norm, each by itself"),
      field("global_clipnorm", &O::global_clipnorm, "gradients are scaled down to this norm, all together"),
      field("clipvalue", &O::clipvalue, "elements of gradients are cut to [-clipvalue, clipvalue]"),
      field("use_ema", &O::use_ema, "keep a moving average of the variables"),
      field("ema_momentum", &O::ema_momentum, "how much of the average a step leaves"),
      field("ema_overwrite_frequency", &O::ema_overwrite_frequency,
            "every so many steps the average takes the place of the variables"));
}

// What an optimizer of your own hands to its base.
struct OptimizerOptions {
  std::string name = "Optimizer";
  std::optional<double> weight_decay = {};
  RUNNEL_OPTIMIZER_OPTIONS({});
  static constexpr auto fields() { return optimizer_fields<OptimizerOptions>(); }
};

// Changes variables so that a loss becomes smaller. One of your own:
//   struct Descent : keras::Optimizer {
//     Descent() : Optimizer(0.1, {.name = "Descent"}) {}
//     void update_step(const Gradient& gradient, const Variable& variable) override {
//       variable.assign_sub(gradient * learning_rate());
//     }
//   };
// All state is in variables, so that a step may be part of a function: it is traced once and reads the learning rate
// and the number of the step whenever it runs. Slots are made when the variables are first seen. A copy of an optimizer
// is a second handle to the same state, so a model compiled with a variable `adam` trains with the iterations,
// learning rate and slots that `adam` shows.
// In the object graph the copies are one node, with Keras's edges: _variables, _iterations, _learning_rate and a list
// for every kind of slot.
class RUNNEL_API Optimizer : public Trackable, public std::enable_shared_from_this<Optimizer> {
 public:
  // Which edges it has in the object graph: Keras's of today, or those of optimizers before 2.11 (optimizers::legacy),
  // whose slots are no parts of it.
  enum class Layout { current, before_2_11 };

  explicit Optimizer(const LearningRate& learning_rate, OptimizerOptions options = {},
                     SourceSite where = SourceSite::current());
  Optimizer(const Optimizer& other);
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return state_.options.name; }
  Trackable& node() override { return state_; }
  std::vector<Edge> children() const override { return state_.children(); }
  virtual std::string class_name() const;  // the name of the C++ class unless an optimizer says otherwise
  virtual Config get_config() const;
  using SerializedAs = Optimizer;  // see register_keras_serializable
  // An optimizer without a from_config of its own: by the constructor it has from Optimizer, else by that without
  // arguments, with the learning rate of the configuration.
  template <class T>
  static std::shared_ptr<T> from_base_config(const Config& config) {
    if constexpr (std::constructible_from<T, LearningRate, OptimizerOptions>) {
      return std::make_shared<T>(LearningRate::from_config(config["learning_rate"]),
                                 options_from_config<OptimizerOptions>(config));
    } else {
      static_assert(std::default_initializable<T>, "the optimizer needs a static from_config(const Config&)");
      const auto made = std::make_shared<T>();
      if (const Config* rate = config.find("learning_rate")) made->set_learning_rate(LearningRate::from_config(*rate));
      return made;
    }
  }

  // How many steps have been done: int64.
  const Variable& iterations() const { return state_.iterations; }
  // With a schedule: that of the last step.
  const Variable& learning_rate() const { return state_.learning_rate; }
  // A number becomes the value of the variable, which traced functions see. An Error for an optimizer with a schedule,
  // which another schedule may replace until the first step.
  virtual void set_learning_rate(const LearningRate& learning_rate);

  bool holds_weights() const override { return false; }
  // iterations, then the slots in the order of Keras. get_weights and set_weights are their values.
  std::vector<Variable> variables() const;
  std::vector<Tensor> get_weights() const;
  void set_weights(const std::vector<Tensor>& values, SourceSite where = SourceSite::current());
  // "m" of a variable, for example; an Error if there is none.
  virtual const Variable& slot(const std::string& kind, const Variable& variable) const;

  // Makes the slots, once. The first step does it for the variables it gets.
  virtual void build(const std::vector<Variable>& variables);
  // One step. Variables without a gradient are left as they are, with one warning on standard error; an Error if none
  // has one.
  virtual void apply_gradients(const std::vector<GradientAndVariable>& gradients,
                               const ConstraintLookup& constraint_of = {}, SourceSite where = SourceSite::current());
  // The gradients of a loss that `tape` has recorded, for apply_gradients.
  virtual std::vector<GradientAndVariable> compute_gradients(const Tensor& loss, const std::vector<Variable>& variables,
                                                             GradientTape& tape);
  void minimize(const std::function<Tensor()>& loss, const std::vector<Variable>& variables,
                const ConstraintLookup& constraint_of = {}, SourceSite where = SourceSite::current());
  void minimize(const Tensor& loss, const std::vector<Variable>& variables, GradientTape& tape,
                const ConstraintLookup& constraint_of = {}, SourceSite where = SourceSite::current());
  // With use_ema: the variables become their averages, as at the end of fit.
  virtual void finalize_variable_values(const std::vector<Variable>& variables);
  // These variables, and those with one of these patterns (regular expressions) in their name, do not decay. Before the
  // optimizer is built.
  virtual void exclude_from_weight_decay(const std::vector<Variable>& variables,
                                         const std::vector<std::string>& names = {});

 protected:
  // Variables of one dtype and their gradients, all changed in the same way.
  struct Step {
    DType dtype;
    std::vector<Variable> variables;
    std::vector<Gradient> gradients;
    std::vector<size_t> places;  // in the order of build
    Tensor learning_rate;        // of that dtype
  };
  struct SlotKind {
    std::string name;  // "m"
    double initial = 0;
    std::string edge = {};  // the list of them in checkpoints: "_momentums"; none when empty
  };

  Optimizer(const LearningRate& learning_rate, OptimizerOptions options, Layout layout, const SourceSite& where = {});
  // Another optimizer around this one, with the same variables.
  Optimizer(const Optimizer& inner, std::string name);
  // Makes the slots of the optimizer inside, and gives them what waits for them here. As in Keras their names do not
  // begin with the name of that optimizer.
  void build_inner(Optimizer& inner, const std::vector<Variable>& variables);
  // What the names of slots begin with: "Adam/".
  const std::string& slot_scope() const { return state_.slot_scope; }

  // Makes the slots with add_slots.
  virtual void create_slots() {}
  // Comes once in every step, before the updates.
  virtual void begin_step() {}
  // Updates the variables; by update_step, one by one, unless a class does better.
  virtual void update(const Step& step);
  virtual void update_step(const Gradient& gradient, const Variable& variable);

  // A slot of each kind for every variable, variable by variable.
  void add_slots(const std::vector<SlotKind>& kinds);
  // One for every variable, in the older layout.
  void add_old_slots(const std::string& kind);
  // The list of slots that an edge leads to; made when first asked for.
  TrackableList& slot_list(const std::string& edge);
  // A variable of its own, tracked as `edge`.
  Variable add_variable(const std::string& edge, const Tensor& initial);
  std::vector<Variable> slots(const std::string& kind, const Step& step) const;
  // IndexedSlices as the dense tensors they stand for.
  static std::vector<Tensor> dense_gradients(const Step& step);
  // The step without the variables whose gradients are IndexedSlices.
  static Step dense_part(const Step& step);
  static Tensor constant(double value, const Step& step) { return Operand(value).as(step.dtype); }
  // 1, 2, ...: the number of this step, of its dtype.
  Tensor number_of(const Step& step) const;
  // The number, or how the schedule is written.
  Config learning_rate_config() const;
  // Those that have a gradient; the warning and the Error for the others.
  std::vector<GradientAndVariable> with_gradients(const std::vector<GradientAndVariable>& all);

 private:
  struct Settings {
    OptimizerOptions options;
    std::string slot_scope;
    Variable iterations;
    Variable learning_rate;
    std::shared_ptr<const LearningRate::Schedule> schedule;
    std::shared_ptr<TrackableList> variables;  // "_variables": iterations and slots
    Layout layout = Layout::current;
    bool built = false;
    std::vector<Variable> updated;  // those it was built for
    std::unordered_map<const VariableSlot*, size_t> places;
    std::vector<bool> decays;                            // likewise, as the next
    std::map<std::string, std::vector<Variable>> slots;  // by kind
    std::set<const VariableSlot*> not_decayed;
    std::vector<std::string> not_decayed_names;
    bool warned = false;
  };
  // What the copies of an optimizer have in common: their node.
  struct State : Trackable, Settings {
    std::shared_ptr<State> inner;  // of the optimizer inside, whose edges are this one's too
    using Trackable::settle_children;
    using Trackable::track_empty;
    std::vector<Slot> old_slots;  // of the older layout
    using Trackable::slot_made;
    std::vector<Edge> children() const override;
    std::vector<Slot> slot_variables() const override { return old_slots; }
    bool holds_weights() const override { return false; }
  };
  void make_slots(const std::vector<Variable>& variables);
  size_t place_of(const Variable& variable) const;
  Variable new_slot(const std::string& kind, const Variable& variable, const Tensor& initial);
  Tensor current_learning_rate();
  void take_step(const std::vector<GradientAndVariable>& gradients, const ConstraintLookup& constraint_of);
  void clip(std::vector<GradientAndVariable>& all) const;
  std::vector<Step> by_dtype(const std::vector<GradientAndVariable>& all, const Tensor& rate) const;
  void decay_weights(const Step& step) const;
  void move_averages(const std::vector<GradientAndVariable>& all) const;
  bool decays(const Variable& variable) const;

  const std::shared_ptr<State> shared_state_;
  State& state_ = *shared_state_;
};

using OptimizerPtr = std::shared_ptr<Optimizer>;

namespace optimizers {
using keras::Optimizer;
// "adam", "sgd", ... (Keras's names, in any case) with default settings, or one of your own by its registered name.
RUNNEL_API OptimizerPtr get(const std::string& name, SourceSite where = SourceSite::current());
// {"class_name": "Adam", "config": {...}} and back.
RUNNEL_API Config serialize(const Optimizer& optimizer);
RUNNEL_API OptimizerPtr deserialize(const Config& config, SourceSite where = SourceSite::current());
}  // namespace optimizers

// An optimizer as an argument: by name, as an object, whose state is then shared, or held by a pointer.
class OptimizerArg {
 public:
  static constexpr const char* kTypeName = "Optimizer";                     // in listings of settings
  OptimizerArg() = default;                                                 // none
  OptimizerArg(const char* name, SourceSite where = SourceSite::current())  // NOLINT: implicit, as all below
      : optimizer_(optimizers::get(name, where)) {}
  OptimizerArg(const std::string& name, SourceSite where = SourceSite::current())  // NOLINT
      : optimizer_(optimizers::get(name, where)) {}
  template <class O>
    requires std::derived_from<O, Optimizer>
  OptimizerArg(const O& optimizer)  // NOLINT
      : optimizer_(typeid(optimizer) == typeid(O) && !std::same_as<O, Optimizer> ? std::make_shared<O>(optimizer)
                                                                                 : held(optimizer)) {}
  template <std::derived_from<Optimizer> O>
  OptimizerArg(const std::shared_ptr<O>& optimizer) : optimizer_(optimizer) {}  // NOLINT

  explicit operator bool() const { return optimizer_ != nullptr; }
  const OptimizerPtr& get() const { return optimizer_; }

 private:
  // An optimizer seen as one of a base class is not copied, which would lose its kind, but must be held by a
  // shared_ptr.
  RUNNEL_API static OptimizerPtr held(const Optimizer& optimizer);
  OptimizerPtr optimizer_;
};

}  // namespace runnel::keras

namespace runnel {

// What apply_gradients takes of what GradientTape::gradient gives: optimizer.apply_gradients(zip(grads, variables)).
RUNNEL_API std::vector<keras::GradientAndVariable> zip(const std::vector<Gradient>& gradients,
                                                       const std::vector<Variable>& variables);

}  // namespace runnel
