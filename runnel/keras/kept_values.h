#pragma once

// Internal: values of objects at a moment, to be put back when what was tried with the objects fails.
#include <ranges>
#include <utility>
#include <vector>

#include "runnel/tensor/object_graph.h"

namespace runnel::keras {

// The objects live as long as this does. Variables share their memory with it until they change.
class KeptValues {
 public:
  // Everything that can be reached from `root` now.
  void keep(Trackable& root) {
    for (const ObjectGraph::Node& node : ObjectGraph::of(root).nodes) {
      for (const ObjectGraph::Attribute& attribute : node.attributes) {
        values_.emplace_back(attribute.value, attribute.value.get());
      }
    }
  }
  // The last first.
  void put_back() const {
    for (const auto& [place, value] : std::views::reverse(values_)) place.set(value);
  }

 private:
  std::vector<std::pair<SavableValue, std::vector<Tensor>>> values_;
};

}  // namespace runnel::keras
