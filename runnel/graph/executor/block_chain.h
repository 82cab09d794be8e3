#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runnel/graph/graph.h"

namespace runnel {

// Steps of a plan that follow each other and work element by element on large tensors of one shape. They run together,
// block by block: what one step makes is still in the cache for the next, and values that nobody outside wants are
// never stored. Every step runs its own kernel, so the bits are those of the steps run one by one.
class BlockChain {
 public:
  struct Step {
    KernelFn kernel;
    const OpDef* op;
    const void* attrs;
    const DType* dtypes;
    std::vector<uint32_t> inputs;  // slots
    uint32_t output;               // slot
  };
  // A slot of the frame that the chain reads or writes.
  struct Value {
    uint32_t slot;
    DType dtype;
    enum { whole, scalar, made, inner } kind;  // read in blocks, read as it is, stored, only of the chain
    int place = 0;                             // of an inner value: which of the small buffers holds it
  };

  // Can the node be part of a chain? Its shape then is that of the chain.
  static bool fits(const Node& node);
  // `is_inner` tells of the output of each step whether nobody outside the chain uses it.
  BlockChain(const Shape& shape, std::vector<Step> steps, const std::vector<const Node*>& nodes,
             const std::vector<bool>& is_inner);

  const Shape& shape() const { return shape_; }
  const std::vector<Value>& values() const { return values_; }

  // The slots of values that are made have memory. failed(i) is called where step i threw, with the exception in
  // flight.
  void run(Tensor* slots, const std::function<void(size_t)>& failed) const;

 private:
  Shape shape_;
  int64_t size_;
  std::vector<Step> steps_;
  std::vector<Value> values_;
  std::vector<std::vector<uint32_t>> operands_;  // of each step: inputs, then the output, as indices of values_
  std::vector<DType> places_;                    // the small buffers
};

}  // namespace runnel
