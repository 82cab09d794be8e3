#include "runnel/track/snapshot.h"

#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/io/checkpoint_writer.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/object_graph.h"
#include "runnel/tensor/profile_step.h"
#include "runnel/track/checkpoint_tensor.h"
#include "runnel/track/object_graph_bytes.h"

namespace runnel::train {

uint64_t Snapshot::bytes() const {
  uint64_t sum = 0;
  for (const Value& value : values) sum += is_plain(value.tensor.dtype()) ? value.tensor.num_bytes() : 0;
  return sum;
}

namespace {

// What the program has, where no session is asked.
std::vector<Tensor> value_in_program(const ObjectGraph::Node& node, const SavableValue& value) {
  try {
    return value.get();
  } catch (const Error& error) {
    if (error.code() != Code::failed_precondition || !dynamic_cast<const VariableSlot*>(node.object)) throw;
    throw error.reworded(fmt::format(
        "{}. If it is a variable of a graph, sessions have its values: pass one, as in save(prefix, session)",
        error.what()));
  }
}

}  // namespace

Snapshot capture(Trackable& root, const std::vector<Trackable::Edge>& attached,
                 const std::function<Tensor(const VariableSlot&)>& value_of) {
  profile::Span span(profile::Kind::checkpoint, "capture values", profile::current_step());
  const ObjectGraph graph = ObjectGraph::of(root, attached);
  Snapshot snapshot;
  for (const ObjectGraph::Node& node : graph.nodes) {
    const auto* slot = value_of ? dynamic_cast<const VariableSlot*>(node.object) : nullptr;
    const Tensor given = slot ? value_of(*slot) : Tensor();
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      std::vector<Tensor> tensors =
          given.defined() ? std::vector<Tensor>{given} : value_in_program(node, attribute.value);
      for (size_t i = 0; i < tensors.size(); ++i) {
        snapshot.values.push_back({attribute.checkpoint_key + attribute.value.suffixes.at(i), std::move(tensors[i])});
      }
    }
  }
  snapshot.values.push_back({kObjectGraphKey, Tensor(object_graph_to_bytes(graph))});
  if (span) span.add_bytes(static_cast<int64_t>(snapshot.bytes()));
  return snapshot;
}

void write_snapshot(const std::string& prefix, const Snapshot& snapshot, Env& env) {
  write_snapshot(prefix, snapshot, env, [] {});
}

void write_snapshot(const std::string& prefix, const Snapshot& snapshot, Env& env, FunctionRef<void()> and_then) {
  profile::Span span(profile::Kind::checkpoint, "write checkpoint", profile::current_step());
  if (span) {
    span.set_detail(prefix);
    span.add_bytes(static_cast<int64_t>(snapshot.bytes()));
  }
  io::CheckpointWriter writer(prefix, env);
  for (const Snapshot::Value& value : snapshot.values) write_tensor(writer, value.key, value.tensor);
  const profile::Span to_disk(profile::Kind::checkpoint, "sync and name files", profile::current_step());
  writer.finish(and_then);
}

}  // namespace runnel::train
