#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runnel/graph/graph.h"
#include "runnel/kernels/cpu/lane_loop.h"

namespace runnel {

// Steps of a plan that follow each other and work element by element on large tensors of one shape. They run together,
// block by block: what one step makes is still in the cache for the next, and values that nobody outside wants are
// never stored. Steps on floats that say what they do to one (OpDef::lane) are compiled into loops, in which values
// stay in registers; the others run their own kernels. So the bits are those of the steps run one by one, but that
// of two NaN either may come out.
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
    int place = -1;                            // of an inner value: which of the small buffers holds it; -1: a register
  };

  // Can the node be part of a chain? Its shape then is that of the chain.
  static bool fits(const Node& node);
  // `is_inner` tells of the output of each step whether nobody outside the chain uses it. `compiled`: as machine code
  // where that is possible.
  BlockChain(const Shape& shape, std::vector<Step> steps, const std::vector<const Node*>& nodes,
             const std::vector<bool>& is_inner, bool compiled);

  const Shape& shape() const { return shape_; }
  const std::vector<Value>& values() const { return values_; }

  // The slots of values that are made have memory. failed(i) is called where step i threw, with the exception in
  // flight.
  void run(Tensor* slots, const std::function<void(size_t)>& failed) const;

 private:
  // Steps that are one compiled loop, or a single one that runs its kernel.
  struct Stage {
    size_t first, count;
    std::unique_ptr<cpu::LaneLoop> loop;
    std::vector<uint32_t> inputs, results;  // of the loop, as indices of values_
  };

  void find_values(const std::vector<const Node*>& nodes, const std::vector<bool>& is_inner);
  void find_stages(bool compiled);
  Stage compile(size_t first, size_t count) const;
  void find_places();
  void run_stage(const Stage& stage, const std::vector<Tensor>& views, int64_t n) const;
  void run_kernel(size_t step, std::vector<Tensor>& views) const;

  Shape shape_;
  int64_t size_;
  int64_t block_;  // elements that go through all stages before the next ones
  std::vector<Step> steps_;
  std::vector<Value> values_;
  std::vector<std::vector<uint32_t>> operands_;  // of each step: inputs, then the output, as indices of values_
  std::vector<size_t> last_use_;                 // of each value: the step
  std::vector<Stage> stages_;
  std::vector<DType> places_;  // the small buffers
};

}  // namespace runnel
