#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

using States = std::vector<Tensor>;

// What a cell gives for one time step.
struct CellStep {
  Tensor output;
  States states;
};

// A cell at work on one sequence: what is the same for every step (weights read, dropout drawn) is done once.
struct CellSequence {
  // What of the steps does not depend on the states, for one step [batch, inputs] or for all, [time, batch, inputs].
  std::function<Tensor(const Tensor& inputs)> project;
  std::function<CellStep(const Tensor& projected, const States& states)> step;
};

// One time step of a recurrent layer. A cell of your own overrides `build`, `state_size` and `step`:
//   auto [output, states] = cell(x, cell.get_initial_state(batch_size));
class RUNNEL_API RNNCell : public Layer {
 public:
  using Layer::Layer;

  CellStep operator()(const Tensor& input, const States& states, const CallArgs& args = {},
                      SourceSite where = SourceSite::current());

  virtual std::vector<int64_t> state_size() const = 0;
  virtual int64_t output_size() const { return state_size().at(0); }
  // Zeros: [batch_size, size] for every state.
  virtual States get_initial_state(const Operand& batch_size, DType dtype = DType::invalid) const;

  // One step; one of the two. `begin` starts a sequence of the given number of rows (an int32 scalar).
  virtual CellStep step(const Tensor& input, const States& states, const CallArgs& args);
  virtual CellSequence begin(const Tensor& batch_size, const CallArgs& args);

  void build(const NestOf<PartialShape>& inputs) override;
  using Layer::build;
  Nest call(const Nest& inputs, const CallArgs& args) override;
};

// A cell as a setting of a layer: one, or several on top of each other.
class RUNNEL_API CellPtr : public std::shared_ptr<RNNCell> {
 public:
  static constexpr const char* kTypeName = "Cell or list(Cell)";  // in listings of settings
  CellPtr() = default;
  template <class C>
    requires std::convertible_to<C*, RNNCell*>
  CellPtr(std::shared_ptr<C> cell) : std::shared_ptr<RNNCell>(std::move(cell)) {}  // NOLINT: implicit, as all below
  CellPtr(const std::vector<CellPtr>& cells);                                      // NOLINT
  CellPtr(std::initializer_list<CellPtr> cells) : CellPtr(std::vector<CellPtr>(cells)) {}

  Config config() const;
  static CellPtr from_config(const Config& config);
};

template <class Self, class Options>
class CellOf : public LayerOf<Self, Options, RNNCell> {
 public:
  using LayerOf<Self, Options, RNNCell>::LayerOf;
  using LayerOf<Self, Options, RNNCell>::operator();
  using RNNCell::operator();
  using RNNCell::build;
};

// Keras computes the gates apart (1) or together (2). Both give the same but for dropout: 1 draws what it drops for
// every gate, 2 once for all. Dropout of states is always as in 1.
template <class Options>
int64_t effective_implementation(const Options& o) {
  return o.recurrent_dropout != 0 || o.implementation == 0 ? 1 : o.implementation;
}

// What cells, and the layers of one cell, can be told: entries of a configuration, in Keras's order.
template <class O>
struct CellFields {
  template <class Visit>
  constexpr void operator()(const Visit& visit) const {
    visit(field("units", &O::units, "the size of the output"));
    visit(field("activation", &O::activation, "applied to the result; none: linear"));
    if constexpr (requires { &O::recurrent_activation; }) {
      visit(field("recurrent_activation", &O::recurrent_activation, "of the gates"));
    }
    visit(field("use_bias", &O::use_bias, "with a bias"));
    visit(field("kernel_initializer", &O::kernel_initializer, "of the kernel"));
    visit(field("recurrent_initializer", &O::recurrent_initializer, "of the recurrent kernel"));
    visit(field("bias_initializer", &O::bias_initializer, "of the bias"));
    if constexpr (requires { &O::unit_forget_bias; }) {
      visit(field("unit_forget_bias", &O::unit_forget_bias, "the bias of the forget gate starts as ones"));
    }
    visit(field("kernel_regularizer", &O::kernel_regularizer, "a loss on the kernel"));
    visit(field("recurrent_regularizer", &O::recurrent_regularizer, "a loss on the recurrent kernel"));
    visit(field("bias_regularizer", &O::bias_regularizer, "a loss on the bias"));
    if constexpr (requires { &O::activity_regularizer; }) {
      visit(field("activity_regularizer", &O::activity_regularizer, "a loss on the output"));
    }
    visit(field("kernel_constraint", &O::kernel_constraint, "what the kernel is brought to after a step"));
    visit(field("recurrent_constraint", &O::recurrent_constraint,
                "what the recurrent kernel is brought to after a step"));
    visit(field("bias_constraint", &O::bias_constraint, "what the bias is brought to after a step"));
    visit(field("dropout", &O::dropout, "the share of inputs dropped while training"));
    visit(field("recurrent_dropout", &O::recurrent_dropout, "the share of states dropped while training"));
  }
};
template <class O>
constexpr auto implementation_fields() {
  return field_list(
      field("implementation", &O::implementation, "how dropout is drawn: 1 for every gate, 2 once for all"));
}
template <class O>
constexpr auto reset_fields() {
  return field_list(field("reset_after", &O::reset_after,
                          "the reset gate applies after the product with the recurrent kernel, not before"));
}

struct SimpleRNNCellOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&SimpleRNNCellOptions::units, &SimpleRNNCellOptions::activation>;
  static constexpr auto fields() { return CellFields<SimpleRNNCellOptions>(); }
};
// h = activation(x . kernel + h . recurrent_kernel + bias)
class RUNNEL_API SimpleRNNCell : public CellOf<SimpleRNNCell, SimpleRNNCellOptions> {
 public:
  static constexpr const char* kClassName = "SimpleRNNCell";
  using CellOf::CellOf;
  std::vector<int64_t> state_size() const override { return {options_.units}; }
  void prepare() override;
  void build(const PartialShape& input) override;
  CellSequence begin(const Tensor& batch_size, const CallArgs& args) override;

  Variable kernel;            // [inputs, units]
  Variable recurrent_kernel;  // [units, units]
  Variable bias;              // [units]
};

struct LSTMCellOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = "tanh";
  Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  int64_t implementation = 2;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&LSTMCellOptions::units, &LSTMCellOptions::activation>;
  static constexpr auto fields() {
    using O = LSTMCellOptions;
    return joined_fields(CellFields<O>(), implementation_fields<O>());
  }
};
// Gates i, f, c, o stand side by side in the weights: c = f * c + i * activation(..), h = o * activation(c). The states
// are h, which is the output, and c.
class RUNNEL_API LSTMCell : public CellOf<LSTMCell, LSTMCellOptions> {
 public:
  static constexpr const char* kClassName = "LSTMCell";
  using CellOf::CellOf;
  std::vector<int64_t> state_size() const override { return {options_.units, options_.units}; }
  void prepare() override;
  void build(const PartialShape& input) override;
  CellSequence begin(const Tensor& batch_size, const CallArgs& args) override;
  Config get_config() const override;

  bool drops_every_step = false;  // inputs are dropped anew in every step, not once for a sequence

  Variable kernel;            // [inputs, 4 * units]
  Variable recurrent_kernel;  // [units, 4 * units]
  Variable bias;              // [4 * units]
};

struct GRUCellOptions {
  NamedOnly named_only = {};
  int64_t units = 0;
  Activation activation = "tanh";
  Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  bool reset_after = true;
  int64_t implementation = 2;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&GRUCellOptions::units, &GRUCellOptions::activation>;
  static constexpr auto fields() {
    using O = GRUCellOptions;
    return joined_fields(CellFields<O>(), reset_fields<O>(), implementation_fields<O>());
  }
};
// Gates z, r, h stand side by side in the weights: h = z * h + (1 - z) * activation(..).
class RUNNEL_API GRUCell : public CellOf<GRUCell, GRUCellOptions> {
 public:
  static constexpr const char* kClassName = "GRUCell";
  using CellOf::CellOf;
  std::vector<int64_t> state_size() const override { return {options_.units}; }
  void prepare() override;
  void build(const PartialShape& input) override;
  CellSequence begin(const Tensor& batch_size, const CallArgs& args) override;
  Config get_config() const override;

  bool drops_every_step = false;  // as in LSTMCell

  Variable kernel;            // [inputs, 3 * units]
  Variable recurrent_kernel;  // [units, 3 * units]
  Variable bias;              // [2, 3 * units]: of the inputs, of the states; [3 * units] unless reset_after
};

struct CellList {
  static constexpr const char* kTypeName = "list(Cell)";
  std::vector<CellPtr> all;
  Config config() const;
  static CellList from_config(const Config& config);
};
struct StackedRNNCellsOptions {
  CellList cells = {};
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() {
    return field_list(field("cells", &StackedRNNCellsOptions::cells, "from the lowest to the highest"));
  }
};
// Each cell gets the output of the one before it. The states are those of all cells in order.
class RUNNEL_API StackedRNNCells : public CellOf<StackedRNNCells, StackedRNNCellsOptions> {
 public:
  static constexpr const char* kClassName = "StackedRNNCells";
  using CellOf::CellOf;
  std::vector<int64_t> state_size() const override;
  int64_t output_size() const override { return options_.cells.all.back()->output_size(); }
  void prepare() override;
  void build(const PartialShape& input) override;
  CellSequence begin(const Tensor& batch_size, const CallArgs& args) override;
};

}  // namespace runnel::keras
