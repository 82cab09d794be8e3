#pragma once

// `for` over a dataset in a function that is being traced: a loop of its graph.

#include "runnel/base/source_site.h"
#include "runnel/data/item.h"
#include "runnel/data/node_ptr.h"
#include "runnel/function/traced_loop.h"

namespace runnel::data {

class RUNNEL_API TracedPass : private traced_blocks::Loop {
 public:
  TracedPass(const NodePtr& node, SourceSite where);
  using Loop::is_traced;
  bool more();
  void get(Item& out) const;

 private:
  NodePtr node_;
  Tensor iterator_;
};

}  // namespace runnel::data
