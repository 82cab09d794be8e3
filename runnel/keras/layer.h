#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runnel/keras/layer_options.h"
#include "runnel/keras/nest_arg.h"
#include "runnel/ops/state.h"
#include "runnel/tensor/nest.h"
#include "runnel/tensor/trackable.h"

namespace runnel {
class Graph;
}

namespace runnel::keras {

// A step of a model with its weights. To make one of your own:
//   struct Linear : keras::Layer {
//     Variable w, b;
//     using Layer::Layer;
//     void build(const PartialShape& input) override {
//       w = add_weight({.name = "w", .shape = {known_dim(input, -1), 1}, .initializer = "zeros"});
//       b = add_weight({.name = "b", .shape = {1}, .initializer = "zeros"});
//     }
//     Tensor call(const Tensor& x, const CallArgs&) override { return matmul(x, w) + b; }
//   };
// Weights are made at the first call, when the shape of the input is known. Layers inside a layer are members:
//   keras::Dense dense{this, "dense", {.units = 10}};
// or are held by shared_ptr and handed to track(), alone or in a TrackableList or TrackableDict:
//   track("dense", dense); track("blocks", blocks);
// so are metrics and plain variables. What is not registered is not trained and not saved. A layer with members that
// are registered by {this, "name"} stays where it was made: moving it is an Error. Layers without such members may be
// moved, those in a std::vector too: the registration follows.
// A layer is used by one thread while it is being built; after that any number of threads may call it.
class RUNNEL_API Layer : public Trackable, public std::enable_shared_from_this<Layer> {
 public:
  explicit Layer(LayerOptions options = {});
  // A member of `parent`, which its checkpoints call `attribute`.
  Layer(Layer* parent, const std::string& attribute, LayerOptions options = {});
  // A copy would have weights of its own: share a layer (keras::make), or clone it with clone_model.
  Layer(const Layer&) = delete;
  ~Layer() override;

  // Builds the layer if need be, brings the inputs to its dtype, applies it. With tensors made by keras::Input the
  // result describes the call, for a functional model.
  Tensor operator()(const Tensor& input, const CallArgs& args = {}, SourceSite where = SourceSite::current());
  Nest operator()(const Nest& inputs, const CallArgs& args = {}, SourceSite where = SourceSite::current());
  // model({a, b})
  Predictions operator()(std::initializer_list<NestArg> inputs, const CallArgs& args = {},
                         SourceSite where = SourceSite::current());

  // Checks the settings and says what calls need (set_input_spec, ...): runs once, before anything else.
  virtual void prepare() {}
  // What a layer does; one of the two `call`s. `args.training` has a value, `args.mask` is set where there is one.
  virtual Tensor call(const Tensor& input, const CallArgs& args);
  virtual Nest call(const Nest& inputs, const CallArgs& args);
  // Makes the weights. The first form gets the shape of a single input, the second that of any; sizes that are not
  // known are kUnknownDim.
  virtual void build(const PartialShape& input);
  virtual void build(const NestOf<PartialShape>& inputs);
  // Makes the weights for inputs of these shapes, unless they are there already.
  void build_from_shapes(const NestOf<PartialShape>& shapes, SourceSite where = SourceSite::current());
  // The mask of the outputs; the layer's own mask by default if it supports masking, else none.
  virtual Tensor compute_mask(const Nest& inputs, const Tensor& mask);
  // The shape of the output for an input shape, by tracing a call.
  PartialShape compute_output_shape(const PartialShape& input, SourceSite where = SourceSite::current());

  // The settings of the layer: what from_config needs to make another. Entries name, trainable and dtype first.
  virtual Config get_config() const;
  virtual std::string class_name() const;  // "Dense"; the name of the C++ class unless a layer says otherwise
  using SerializedAs = Layer;              // see register_keras_serializable
  // A layer without a from_config of its own: by the constructor it has from Layer, else by that without arguments.
  template <class T>
  static std::shared_ptr<T> from_base_config(const Config& config) {
    if constexpr (std::constructible_from<T, LayerOptions>) {
      return std::make_shared<T>(layer_options_from_config(config));
    } else {
      static_assert(std::default_initializable<T>, "the layer needs a static from_config(const Config&)");
      return std::make_shared<T>();
    }
  }

  // dense, dense_1, ... in the order in which layers of a kind are made, unless a name was given. A class derived from
  // Layer itself takes its number when it is first used or asked.
  const std::string& name() const;
  // What it was told of its input; of unknown rank if nothing.
  const PartialShape& batch_input_shape() const { return batch_input_shape_; }
  bool built() const { return built_; }
  // A layer that is not trainable has no trainable weights, nor have the layers in it.
  bool trainable() const { return trainable_; }
  virtual void set_trainable(bool trainable);
  // Every change of what is trainable has a number: the last one in the process.
  static uint64_t last_trainable_change();
  bool supports_masking() const { return supports_masking_; }
  const Policy& dtype_policy() const { return policy_; }
  DType variable_dtype() const { return policy_.variable_dtype(); }
  DType compute_dtype() const { return policy_.compute_dtype(); }

  // This layer's and those of the layers and other parts in it, in Keras's order. `weights` is all: of a layer the
  // trainable ones first, of a model layer by layer.
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  std::vector<Variable> weights() const;
  std::vector<Variable> trainable_variables() const { return trainable_weights(); }
  std::vector<Variable> variables() const { return weights(); }
  std::vector<Tensor> get_weights() const;
  // An Error naming the weight that does not fit.
  void set_weights(const std::vector<Tensor>& values, SourceSite where = SourceSite::current());
  int64_t count_params(SourceSite where = SourceSite::current()) const;  // an Error before the layer is built

  // The layers directly in this one, also those in lists and dicts of it.
  std::vector<Layer*> sublayers() const;

  // Losses of the last call on this thread: those of add_loss, of regularizers (always), of activity regularizers; with
  // the inner layers'. Those of a call in a function are there until the function ends, for what is traced with it.
  std::vector<Tensor> losses() const;
  // The constraint of one of its weights, if it has one; what optimizers apply after an update.
  const Constraint* constraint_of(const Variable& weight) const;

  // What calls of this layer expect; a call that does not fit is an Error that names the layer and the shapes.
  struct InputSpec {
    int ndim = -1;
    int min_ndim = -1;
    std::vector<std::pair<int, int64_t>> axes;  // axis (negative: from the end) and the size it must have
    std::string means = {};                     // what the dimensions are, for errors: "[batch, steps, features]"
  };

 protected:
  // Becomes a member of `parent`; an Error if there is none.
  void join(Layer* parent, const std::string& attribute);
  Variable add_weight(const WeightOptions& options, SourceSite where = SourceSite::current());
  void add_loss(const Tensor& loss);
  // A part held by pointer (a list of layers, a layer made in build), under the name `attribute`.
  template <class L>
  std::shared_ptr<L> add_layer(const std::string& attribute, std::shared_ptr<L> layer) {
    track(attribute, std::shared_ptr<Trackable>(layer));
    return layer;
  }
  // Those that no edge leads to, but a number: of functional and sequential models.
  virtual std::vector<Layer*> numbered_layers() const { return {}; }
  void set_input_spec(InputSpec spec) { input_spec_ = std::move(spec); }
  void check_shape(const PartialShape& input) const;  // an Error unless it fits the spec
  // An Error for a layer whose content another object has by now.
  void refuse_moved_from() const;
  // Has it weights? Also of a layer whose content another object has by now, which has none.
  static bool any_weights_in(const Layer& layer);
  // `trainable` of layers, by their numbers.
  using TrainableFlags = std::unordered_map<uint64_t, bool>;
  TrainableFlags trainable_flags() const;  // of this layer and those in it
  // What set_trainable said of them before was meant for what comes now: a compile.
  void accept_trainable();
  // Those of this layer and the layers in it that are among `flags` get what that says, each for itself. Returns what
  // the layers had where that was something else.
  TrainableFlags exchange_trainable(const TrainableFlags& flags);
  // Did set_trainable change one of these layers after the last compile of any model they are in?
  bool has_new_trainable(const TrainableFlags& flags) const;
  void set_supports_masking(bool supports) { supports_masking_ = supports; }
  // Inputs are brought to the compute dtype unless a layer switches that off (labels, indices).
  void set_autocast(bool autocast) { autocast_ = autocast; }
  void set_activity_regularizer(Regularizer regularizer) { activity_regularizer_ = std::move(regularizer); }
  // The size of a dimension (negative: from the end), which building needs; an Error naming the layer when unknown.
  int64_t known_dim(const PartialShape& shape, int axis, SourceSite where = SourceSite::current()) const;
  // A weight of the layer as its computation wants it: cast to the compute dtype.
  Tensor compute_value(const Variable& weight) const;
  // Names of weights do not start with the name of this layer: of models that only connect layers.
  void set_names_weights(bool names) { names_weights_ = names; }
  void mark_built() { built_ = prepared_ = true; }  // nothing is left to build
  void mark_unbuilt() { built_ = false; }           // the next call builds
  // Where the weights of a layer come before those of the layers in it, and trainable ones before others, those of a
  // model come layer by layer, its own last.
  virtual bool counts_by_layer() const { return false; }
  // With all that is in it; an Error where parts are members of the layer.
  Layer(Layer&& other) noexcept(false);
  // The layer becomes the other one, wherever it is registered.
  Layer& operator=(Layer&& other) noexcept(false);

 private:
  // What goes with a weight of this layer.
  struct WeightRules {
    Variable variable;
    Regularizer regularizer;
    Constraint constraint;
  };
  // One of two: a layer, or a variable of a list, a metric or the like.
  struct Part {
    Layer* layer = nullptr;
    Variable variable;
  };
  Nest run(const Nest& given, const CallArgs& args);
  void give_weights(const std::vector<Tensor>& values);
  void look_for_place(const Layer& outermost);
  void tell_of_new_weights();
  void ensure_prepared();
  virtual void build_for(const Nest& inputs);
  void check_inputs(const Nest& inputs) const;
  void regularize_activity(const Nest& outputs);
  void forget_losses() const;
  std::vector<const Layer*> all_layers() const;
  std::string weight_name(const std::string& name) const;
  std::vector<Part> parts() const;
  static void add_parts(const Trackable& at, bool with_variables, std::vector<const Trackable*>& met,
                        std::vector<Part>& out);
  void collect_own(bool trainable, bool here, std::vector<Variable>& out) const;
  void collect_weights(bool trainable, bool parents_trainable, std::vector<Variable>& out) const;
  void collect_all_weights(std::vector<Variable>& out) const;
  const WeightRules* find_rules(const Variable& weight) const;

  mutable std::string name_;  // empty: chosen when it is first asked for
  Policy policy_;
  PartialShape batch_input_shape_ = PartialShape::unknown();
  uint64_t id_;  // no other layer of this process has it; it goes where the layer is moved
  bool trainable_ = true;
  bool trainable_is_new_ = false;  // set_trainable changed it, and no model with the layer was compiled since
  bool built_ = false;
  bool prepared_ = false;
  bool supports_masking_ = false;
  bool autocast_ = true;
  bool names_weights_ = true;
  bool place_known_ = false;  // it was looked for among the layers of a model that calls it
  bool moved_from_ = false;
  uint64_t made_in_call_ = 0;     // CallScope::number of the call in which the layer was made; 0: in none
  std::weak_ptr<Graph> made_in_;  // of the function that was being traced then, until that was told of the weights
  std::vector<WeightRules> rules_;
  Regularizer activity_regularizer_;
  InputSpec input_spec_;
};

using LayerPtr = std::shared_ptr<Layer>;

// Names of layers start anew (dense, dense_1, ...), as after a fresh start of the program.
RUNNEL_API void clear_session();
RUNNEL_API std::string to_snake_case(const std::string& class_name);  // "Conv2D": "conv2d"
// dense, dense_1, dense_2, ...: the next name of a kind that is not taken yet; numbers start with `first`, 0 is left
// out.
RUNNEL_API std::string unique_name(const std::string& kind, int first = 0);

// {"class_name": "Dense", "config": {...}} as a layer, and back.
RUNNEL_API LayerPtr layer_from_config(const Config& config, SourceSite where = SourceSite::current());
RUNNEL_API Config layer_to_config(const Layer& layer);

}  // namespace runnel::keras
