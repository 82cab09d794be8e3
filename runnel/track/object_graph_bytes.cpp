#include "runnel/track/object_graph_bytes.h"

#include <runnel_pb/trackable_object_graph.pb.h>

#include <limits>

#include "runnel/base/format.h"

namespace runnel::train {

std::string object_graph_to_bytes(const ObjectGraph& graph) {
  pb::TrackableObjectGraph message;
  const auto number = [](size_t node) { return static_cast<int32_t>(node); };
  for (const ObjectGraph::Node& node : graph.nodes) {
    auto& made = *message.add_nodes();
    for (const ObjectGraph::Child& child : node.children) {
      auto& reference = *made.add_children();
      reference.set_node_id(number(child.node));
      reference.set_local_name(child.name);
    }
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      auto& value = *made.add_attributes();
      value.set_name(attribute.value.name);
      value.set_full_name(attribute.value.full_name);
      value.set_checkpoint_key(attribute.checkpoint_key);
    }
    for (const ObjectGraph::Slot& slot : node.slot_variables) {
      auto& reference = *made.add_slot_variables();
      reference.set_original_variable_node_id(number(slot.variable));
      reference.set_slot_name(slot.name);
      reference.set_slot_variable_node_id(number(slot.slot));
    }
    if (node.registered_saver) {
      made.mutable_registered_saver()->set_name(node.registered_saver->name);
      made.mutable_registered_saver()->set_object_name(node.registered_saver->object_name);
    }
    // A false that is said and none at all are two things: TensorFlow leaves out objects that say false.
    if (node.has_checkpoint_values || node.says_has_values) {
      made.mutable_has_checkpoint_values()->set_value(node.has_checkpoint_values);
    }
  }
  return message.SerializeAsString();
}

ObjectGraph object_graph_from_bytes(std::string_view bytes) {
  pb::TrackableObjectGraph message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw Error(Code::data_loss, "its bytes are no object graph");
  }
  if (message.nodes().empty()) throw Error(Code::data_loss, "it has no node");
  const auto place = [&](int32_t number) {
    if (number < 0 || number >= message.nodes_size()) {
      throw make_error(Code::data_loss, "it has {} nodes, and one refers to node {}", message.nodes_size(), number);
    }
    return static_cast<size_t>(number);
  };
  ObjectGraph graph;
  for (const auto& node : message.nodes()) {
    ObjectGraph::Node& made = graph.nodes.emplace_back();
    for (const auto& child : node.children()) made.children.push_back({child.local_name(), place(child.node_id())});
    for (const auto& value : node.attributes()) {
      ObjectGraph::Attribute& attribute = made.attributes.emplace_back();
      attribute.value.name = value.name();
      attribute.value.full_name = value.full_name();
      attribute.checkpoint_key = value.checkpoint_key();
    }
    for (const auto& slot : node.slot_variables()) {
      made.slot_variables.push_back(
          {place(slot.original_variable_node_id()), slot.slot_name(), place(slot.slot_variable_node_id())});
    }
    made.has_checkpoint_values = node.has_checkpoint_values().value();
    made.says_has_values = node.has_has_checkpoint_values();
    if (node.has_registered_saver()) {
      made.registered_saver = {node.registered_saver().name(), node.registered_saver().object_name()};
    }
  }
  return graph;
}

}  // namespace runnel::train
