#pragma once

// Datasets as elements of datasets: a scalar of dtype variant that refers to the description.
#include <string>
#include <vector>

#include "runnel/data/item.h"
#include "runnel/data/node_ptr.h"

namespace runnel::data {

class RUNNEL_API DatasetSpec : public CompositeSpec {
 public:
  std::string describe() const override { return "Dataset"; }
  bool fits(const CompositeSpec& other) const override { return dynamic_cast<const DatasetSpec*>(&other) != nullptr; }
  static const CompositeSpecPtr& instance();
};

RUNNEL_API Tensor to_variant(NodePtr node);
RUNNEL_API NodePtr from_variant(const Tensor& variant);  // an Error where it is none
// The structure of an element that is a dataset.
RUNNEL_API const Structure* dataset_structure();

// Elements that are there already.
RUNNEL_API NodePtr list_node(std::vector<Item> items, ElementSpec spec);

}  // namespace runnel::data
