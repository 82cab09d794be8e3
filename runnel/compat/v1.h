#pragma once

// TensorFlow 1's way of working: build a graph first, run parts of it in a session afterwards.
//   compat::v1::disable_eager_execution();
//   Tensor a = compat::v1::placeholder(int32), b = compat::v1::placeholder(int32);
//   Tensor c = a + b;
//   compat::v1::Session session;
//   std::cout << session.run(c, {{a, 2}, {b, 3}}).item<int32_t>();

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runnel/op/operand.h"
#include "runnel/ops/state.h"

namespace runnel {
class Graph;
struct Node;
}  // namespace runnel

namespace runnel::compat::v1 {

class GraphState;
struct OpenGraph;

// A node of a graph, to be run for what it does.
class RUNNEL_API Operation {
 public:
  Operation() = default;
  bool defined() const { return node_ != nullptr; }
  const std::string& name(SourceSite where = SourceSite::current()) const;
  const std::string& type(SourceSite where = SourceSite::current()) const;  // of the op

 private:
  friend class GraphState;
  friend class Session;
  friend RUNNEL_API Operation operation_of(const Tensor& tensor, SourceSite where);
  const Node& node(const SourceSite& where) const;
  Operation(std::shared_ptr<runnel::Graph> graph, Node* node) : graph_(std::move(graph)), node_(node) {}
  std::shared_ptr<runnel::Graph> graph_;
  Node* node_ = nullptr;
};

// The node that computes a tensor.
RUNNEL_API Operation operation_of(const Tensor& tensor, SourceSite where = SourceSite::current());

// What control_dependencies waits for and what a session fetches: a tensor, a node, a variable's value, or a gradient.
class RUNNEL_API Fetch {
 public:
  Fetch(const Tensor& tensor) : tensor_(tensor) {}                           // NOLINT: implicit
  Fetch(const Variable& variable) : variable_(variable) {}                   // NOLINT
  Fetch(const Operation& operation) : operation_(operation) {}               // NOLINT
  Fetch(const Gradient& gradient, SourceSite where = SourceSite::current())  // NOLINT: an Error where there is none
      : tensor_(gradient.value(where)) {}

 private:
  friend class GraphState;
  Tensor tensor_;
  Variable variable_;
  Operation operation_;
};

// A graph that grows: while a scope of as_default() lives, every op called on this thread becomes a node instead of
// being run. Unlike a traced function it adds no order between effects: control_dependencies does.
class RUNNEL_API Graph {
 public:
  Graph();

  class RUNNEL_API Scope {
   public:
    explicit Scope(std::shared_ptr<GraphState> state);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<GraphState> state_;
    std::unique_ptr<OpenGraph> open_;
  };
  [[nodiscard]] Scope as_default(SourceSite where = SourceSite::current()) const { return Scope(state(where)); }

  std::vector<std::string> operations(
      SourceSite where = SourceSite::current()) const;  // the names of the nodes, in the order they were made
  std::vector<Variable> global_variables(SourceSite where = SourceSite::current()) const;
  std::vector<Variable> trainable_variables(SourceSite where = SourceSite::current()) const;
  std::string to_graph_def(SourceSite where = SourceSite::current()) const;  // TensorFlow's GraphDef, as bytes
  std::string to_text(SourceSite where = SourceSite::current()) const;

 private:
  friend class Session;
  friend RUNNEL_API Graph get_default_graph();
  explicit Graph(std::shared_ptr<GraphState> state) : state_(std::move(state)) {}
  const std::shared_ptr<GraphState>& state(const SourceSite& where = {}) const;  // an Error where it was moved from
  std::shared_ptr<GraphState> state_;
};

// From here on ops of this thread go into the default graph.
RUNNEL_API void disable_eager_execution(SourceSite where = SourceSite::current());
RUNNEL_API bool executing_eagerly();
// That of the innermost scope, else the one that disable_eager_execution uses.
RUNNEL_API Graph get_default_graph();
// An empty default graph in place of the old one.
RUNNEL_API void reset_default_graph(SourceSite where = SourceSite::current());

// A value that run() is given. Unknown dimensions are -1; any shape fits unless one is given.
RUNNEL_API Tensor placeholder(DType dtype, const PartialShape& shape = PartialShape::unknown(),
                              const std::string& name = "Placeholder", SourceSite where = SourceSite::current());

using Initializer = std::function<Tensor(const Shape& shape, DType dtype)>;
RUNNEL_API Initializer zeros_initializer();
RUNNEL_API Initializer ones_initializer();
RUNNEL_API Initializer constant_initializer(double value);
RUNNEL_API Initializer random_normal_initializer(double mean = 0, double stddev = 1);
RUNNEL_API Initializer truncated_normal_initializer(double mean = 0, double stddev = 1);
RUNNEL_API Initializer glorot_uniform_initializer();

struct GetVariable {
  DType dtype = DType::float32;
  Initializer initializer = {};  // glorot_uniform for floats, zeros otherwise
  bool trainable = true;
};
// A new variable; it has a value in a session once its initializer or an assign ran there. A name may be given once.
// In a variable_scope with reuse, the variable of that name that is there already.
RUNNEL_API Variable get_variable(const std::string& name, const Shape& shape, const GetVariable& options = {},
                                 SourceSite where = SourceSite::current());

// How get_variable cuts a variable into parts: at most so many along one axis, the first ones longer by one where the
// dimension cannot be divided.
struct Partitioner {
  int num_shards;
  int axis;
};
inline Partitioner fixed_size_partitioner(int num_shards, int axis = 0) { return {num_shards, axis}; }

// A variable in several parts, each a variable of the graph: name/part_0, name/part_1, ... A Saver keeps them as one
// value, and restores it into any other number of parts.
class RUNNEL_API PartitionedVariable {
 public:
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  const std::vector<Variable>& parts() const { return parts_; }
  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }
  Tensor as_tensor(SourceSite where = SourceSite::current()) const;  // the parts joined
  operator Tensor() const { return as_tensor(SourceSite()); }        // NOLINT: implicit

 private:
  friend RUNNEL_API PartitionedVariable get_variable(const std::string& name, const Shape& shape,
                                                     const GetVariable& options, const Partitioner& partitioner,
                                                     SourceSite where);
  std::string name_;
  Shape shape_;
  int axis_ = 0;
  std::vector<Variable> parts_;
};
RUNNEL_API PartitionedVariable get_variable(const std::string& name, const Shape& shape, const GetVariable& options,
                                            const Partitioner& partitioner, SourceSite where = SourceSite::current());

struct VariableScopeOptions {
  bool reuse = false;  // get_variable gives variables that are there already, also in scopes inside
};
// While it lives, names that get_variable is given stand below its own: scope/name. Scopes nest.
class RUNNEL_API VariableScope {
 public:
  VariableScope(const std::string& name, const VariableScopeOptions& options, SourceSite where = SourceSite::current());
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

 private:
  std::shared_ptr<GraphState> state_;
};
[[nodiscard]] inline VariableScope variable_scope(const std::string& name, const VariableScopeOptions& options = {},
                                                  SourceSite where = SourceSite::current()) {
  return VariableScope(name, options, where);
}

// The new value; running it, or what depends on it, assigns.
RUNNEL_API Tensor assign(const Variable& variable, const Operand& value);
RUNNEL_API Tensor assign_add(const Variable& variable, const Operand& delta);
RUNNEL_API Tensor assign_sub(const Variable& variable, const Operand& delta);

RUNNEL_API std::vector<Variable> global_variables();
RUNNEL_API std::vector<Variable> trainable_variables();
RUNNEL_API Operation global_variables_initializer(SourceSite where = SourceSite::current());
RUNNEL_API Operation variables_initializer(const std::vector<Variable>& variables,
                                           SourceSite where = SourceSite::current());
// Runs all of them.
RUNNEL_API Operation group(const std::vector<Fetch>& operations, const std::string& name = "group_deps",
                           SourceSite where = SourceSite::current());
RUNNEL_API Operation no_op(const std::string& name = "NoOp", SourceSite where = SourceSite::current());
// Runs all that the ops called by `changes` do to variables and the world, in the order of the calls: what update_state
// of a metric returns in TensorFlow 1.
//   session.run(updates([&] { accuracy.update_state(labels, predictions); }));
RUNNEL_API Operation updates(const std::function<void()>& changes, SourceSite where = SourceSite::current());

// Nodes made while it lives run after these.
class RUNNEL_API ControlDependencies {
 public:
  explicit ControlDependencies(const std::vector<Fetch>& before, SourceSite where = SourceSite::current());
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  std::shared_ptr<GraphState> state_;
};
[[nodiscard]] inline ControlDependencies control_dependencies(const std::vector<Fetch>& before,
                                                              SourceSite where = SourceSite::current()) {
  return ControlDependencies(before, where);
}

// d y / d x for each variable; nothing where y does not depend on it.
RUNNEL_API std::vector<Gradient> gradients(const Tensor& y, const std::vector<Variable>& xs,
                                           SourceSite where = SourceSite::current());

struct ConfigProto {
  int intra_op_parallelism_threads = 0;  // of the whole process; 0 leaves it as it is
};

// Runs parts of a graph. Variables have values of their own in each session.
class RUNNEL_API Session {
 public:
  using FeedDict = std::vector<std::pair<Tensor, Tensor>>;  // a tensor of the graph and its value

  explicit Session(const ConfigProto& config = {});  // of the default graph
  explicit Session(const Graph& graph, const ConfigProto& config = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs what the fetches need and nothing else. An operation gives an undefined Tensor. A value fed for a tensor of
  // another dtype is cast.
  template <std::convertible_to<Fetch> F>
  Tensor run(const F& fetch, const FeedDict& feed_dict = {}, SourceSite where = SourceSite::current()) {
    return run_all({Fetch(fetch)}, feed_dict, where)[0];
  }
  // Several at once: const auto [done, loss_value] = session.run({train, loss}, {{x, batch}});
  template <size_t n>
  std::array<Tensor, n> run(const Fetch (&fetches)[n], const FeedDict& feed_dict = {},
                            SourceSite where = SourceSite::current()) {
    std::vector<Tensor> all = run_all({fetches, fetches + n}, feed_dict, where);
    std::array<Tensor, n> results;
    std::ranges::move(all, results.begin());
    return results;
  }
  template <std::same_as<Fetch> F>  // a template, so that braces always mean the one above
  std::vector<Tensor> run(const std::vector<F>& fetches, const FeedDict& feed_dict = {},
                          SourceSite where = SourceSite::current()) {
    return run_all(fetches, feed_dict, where);
  }
  // The value that a variable has in this session, and another for it: no nodes are made and none run. A variable
  // without a value yet is an Error.
  Tensor value_of(const Variable& variable, SourceSite where = SourceSite::current()) const {
    return value_of(variable.slot(where), where);
  }
  Tensor value_of(const VariableSlot& variable, SourceSite where = SourceSite::current()) const;
  void load(const Variable& variable, const Tensor& value, SourceSite where = SourceSite::current()) {
    load(variable.slot(where), value, where);
  }
  void load(const VariableSlot& variable, const Tensor& value, SourceSite where = SourceSite::current());
  // Runs the initializers of those of the variables that are of this graph; others have their value already.
  void initialize(const std::vector<const VariableSlot*>& variables, SourceSite where = SourceSite::current());
  void close();

 private:
  std::vector<Tensor> run_all(const std::vector<Fetch>& fetches, const FeedDict& feed_dict, const SourceSite& where);
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace runnel::compat::v1
