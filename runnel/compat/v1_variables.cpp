// Variables of graphs: how they are made, named, initialized and assigned.
#include <algorithm>
#include <cmath>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/handle.h"

namespace runnel::compat::v1 {
namespace {

// A read that comes after the newest node. Bodies keep the order of effects by themselves.
Tensor read_after_last(GraphState& state, const Variable& variable) {
  if (is_inside_block(state)) return variable.value();
  state.tracer.dependencies.push_back({state.graph()->nodes().back().get()});
  const Tensor value = variable.value();
  state.tracer.dependencies.pop_back();
  return value;
}

}  // namespace

Initializer zeros_initializer() {
  return [](const Shape& shape, DType dtype) { return zeros(shape, dtype); };
}
Initializer ones_initializer() {
  return [](const Shape& shape, DType dtype) { return ones(shape, dtype); };
}
Initializer constant_initializer(double value) {
  return [value](const Shape& shape, DType dtype) { return fill(shape, Operand(value).as(dtype)); };
}
Initializer random_normal_initializer(double mean, double stddev) {
  return [=](const Shape& shape, DType dtype) { return random::normal(shape, mean, stddev, dtype); };
}
Initializer truncated_normal_initializer(double mean, double stddev) {
  return [=](const Shape& shape, DType dtype) { return random::truncated_normal(shape, mean, stddev, dtype); };
}
Initializer glorot_uniform_initializer() {
  return [](const Shape& shape, DType dtype) {
    // The last two dimensions are inputs and outputs, those before them a window that both see.
    double fan_in = 1;
    double fan_out = 1;
    if (shape.rank() == 1) fan_in = fan_out = static_cast<double>(shape[0]);
    if (shape.rank() > 1) {
      double window = 1;
      for (int i = 0; i < shape.rank() - 2; ++i) window *= static_cast<double>(shape[i]);
      fan_in = window * static_cast<double>(shape[shape.rank() - 2]);
      fan_out = window * static_cast<double>(shape[shape.rank() - 1]);
    }
    const double limit = std::sqrt(6.0 / std::max(1.0, fan_in + fan_out));
    return random::uniform(shape, -limit, limit, dtype);
  };
}

VariableScope::VariableScope(const std::string& name, const VariableScopeOptions& options, SourceSite where)
    : state_(at_caller(where, [] { return current_state("variable_scope").shared_from_this(); })) {
  auto& scopes = state_->variable_scopes;
  const bool inside = !scopes.empty();
  scopes.push_back(
      {(inside ? scopes.back().prefix : "") + name + "/", options.reuse || (inside && scopes.back().reuse)});
}
VariableScope::~VariableScope() { state_->variable_scopes.pop_back(); }

Variable get_variable(const std::string& name, const Shape& shape, const GetVariable& options, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = current_state("get_variable");
    const bool scoped = !state.variable_scopes.empty();
    const bool reuse = scoped && state.variable_scopes.back().reuse;
    const std::string full_name = (scoped ? state.variable_scopes.back().prefix : "") + name;
    for (const auto& each : state.variables) {
      const VariableSlot& slot = each.variable.slot();
      if (slot.name != full_name) continue;
      if (!reuse) {
        throw make_error(Code::already_exists, "[get_variable] the graph has a variable '{}' already", full_name);
      }
      if (slot.dtype != options.dtype || !(slot.shape == PartialShape(shape))) {
        throw invalid_argument("[get_variable] '{}' is {}{} and cannot be reused as {}{}", full_name,
                               dtype_name(slot.dtype), slot.shape.str(), dtype_name(options.dtype), shape.str());
      }
      return each.variable;
    }
    if (reuse) throw make_error(Code::not_found, "[get_variable] there is no variable '{}' to reuse", full_name);
    Tensor handle = Tensor::empty(DType::resource, {});
    handle.mutable_data<ResourceHandle>()->object =
        std::make_shared<VariableSlot>(full_name, options.dtype, PartialShape(shape), options.trainable);
    const Variable variable = Variable::from_handle(handle);
    const Initializer init = options.initializer       ? options.initializer
                             : is_float(options.dtype) ? glorot_uniform_initializer()
                                                       : zeros_initializer();
    // Also where a branch or a loop asks for it, the variable belongs to the graph.
    std::optional<Graph::Scope> root;
    if (is_inside_block(state)) root.emplace(state.shared_from_this());
    state.declare(variable, init(shape, options.dtype));
    return variable;
  });
}

PartitionedVariable get_variable(const std::string& name, const Shape& shape, const GetVariable& options,
                                 const Partitioner& partitioner, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = current_state("get_variable");
    const int axis = normalize_axis(partitioner.axis, shape.rank());
    const int64_t size = shape[axis];
    const int64_t parts = std::min<int64_t>(partitioner.num_shards, size);
    if (parts < 1) {
      throw invalid_argument("[get_variable] '{}' of shape {} cannot be cut into {} parts along axis {}", name,
                             shape.str(), partitioner.num_shards, axis);
    }
    const Initializer init = options.initializer       ? options.initializer
                             : is_float(options.dtype) ? glorot_uniform_initializer()
                                                       : zeros_initializer();
    PartitionedVariable result;
    result.shape_ = shape;
    result.axis_ = axis;
    // The parts are those of one initial value, which is made once.
    Tensor whole;
    int64_t start = 0;
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t length = size / parts + (i < size % parts ? 1 : 0);
      Dims dims = shape.dims(), begin(dims.size(), 0);
      dims[static_cast<size_t>(axis)] = length;
      begin[static_cast<size_t>(axis)] = start;
      const auto slice_of_whole = [&](const Shape& part, DType dtype) {
        if (!whole.defined()) whole = init(shape, dtype);
        return slice(whole, Tensor::of<int64_t>({begin.begin(), begin.end()}),
                     Tensor::of<int64_t>({part.begin(), part.end()}));
      };
      GetVariable part_options = options;
      part_options.initializer = slice_of_whole;
      const Variable part = get_variable(fmt::format("{}/part_{}", name, i), Shape(dims), part_options);
      result.parts_.push_back(part);
      result.name_ = part.name().substr(0, part.name().rfind("/part_"));
      io::CheckpointSlice place(dims.size());
      for (size_t d = 0; parts > 1 && d < dims.size(); ++d) place[d] = {begin[d], dims[d]};
      state.parts[&part.slot()] = {result.name_, shape, place};
      start += length;
    }
    return result;
  });
}

Tensor PartitionedVariable::as_tensor(SourceSite where) const {
  return composed(where, [&] {
    std::vector<Tensor> values;
    for (const Variable& part : parts_) values.push_back(part.value());
    return values.size() == 1 ? values[0] : concat(values, axis_);
  });
}

Tensor assign(const Variable& variable, const Operand& value) {
  return composed(value.where(), [&] {
    GraphState& state = current_state("assign");
    variable.assign(value);
    return read_after_last(state, variable);
  });
}
Tensor assign_add(const Variable& variable, const Operand& delta) {
  return composed(delta.where(), [&] {
    GraphState& state = current_state("assign_add");
    variable.assign_add(delta);
    return read_after_last(state, variable);
  });
}
Tensor assign_sub(const Variable& variable, const Operand& delta) {
  return composed(delta.where(), [&] {
    GraphState& state = current_state("assign_sub");
    variable.assign_sub(delta);
    return read_after_last(state, variable);
  });
}

Operation variables_initializer(const std::vector<Variable>& variables, SourceSite where) {
  return composed(where, [&] {
    GraphState& state = building_state("variables_initializer");
    std::vector<Fetch> all;
    for (const Variable& v : variables) all.emplace_back(state.declared(v).initializer);
    return group(all, "init");
  });
}
Operation global_variables_initializer(SourceSite where) { return variables_initializer(global_variables(), where); }

}  // namespace runnel::compat::v1
