#pragma once

#include <memory>

namespace runnel::data {

// A description of a pipeline, as data/node.h declares it.
class DatasetNode;
using NodePtr = std::shared_ptr<const DatasetNode>;

}  // namespace runnel::data
