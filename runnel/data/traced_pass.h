#pragma once

// `for` over a dataset in a function that is being traced: a loop of its graph.
#include <source_location>

#include "runnel/data/node.h"
#include "runnel/function/natural_loop.h"

namespace runnel::data {

class RUNNEL_API TracedPass : private natural::Loop {
 public:
  TracedPass(const NodePtr& node, std::source_location where);
  using Loop::is_traced;
  bool more();
  void get(Item& out) const;

 private:
  NodePtr node_;
  Tensor iterator_;
};

}  // namespace runnel::data
