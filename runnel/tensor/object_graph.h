#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/tensor/trackable.h"

namespace runnel {

// Everything that can be reached from one object, as TensorFlow's TrackableObjectGraph: nodes in the order in which a
// breadth-first walk meets them, then the slots of optimizers. A checkpoint is such a graph and its values.
struct RUNNEL_API ObjectGraph {
  struct Child {
    std::string name;
    size_t node;
  };
  struct Attribute {
    SavableValue value;
    std::string checkpoint_key;  // "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"
  };
  struct Slot {
    size_t variable;
    std::string name;
    size_t slot;
  };
  struct Node {
    Trackable* object = nullptr;  // null in a graph that comes from a file
    std::vector<Child> children;
    std::vector<Attribute> attributes;
    std::vector<Slot> slot_variables;
    bool has_checkpoint_values = false;  // it, or something below it, has values
    // What files say besides, kept so that the graph can be written as it was read.
    bool says_has_values = true;  // TensorFlow before 2.6 does not say it; then it may have values
    struct RegisteredSaver {
      std::string name, object_name;
    };
    std::optional<RegisteredSaver> registered_saver = {};
  };

  // `attached` edges count as the root's, though it does not know them.
  static ObjectGraph of(Trackable& root, const std::vector<Trackable::Edge>& attached = {});

  std::vector<Node> nodes;  // the first is the root
};

// The key of a value as people want to read it: without "/.ATTRIBUTES/VARIABLE_VALUE".
RUNNEL_API std::string short_key(std::string_view checkpoint_key);

// A name as a part of a key: '.' becomes "..", '/' becomes ".S".
RUNNEL_API std::string escape_local_name(std::string_view name);

}  // namespace runnel
