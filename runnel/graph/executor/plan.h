#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/graph/executor/block_chain.h"
#include "runnel/graph/graph.h"

namespace runnel {

// A graph made ready to run: a flat list of steps with resolved kernels. Any number of threads may run it at once.
//
// Every output of a node has a slot in the Frame of a run. Values of known shape that nobody but the plan sees stand in
// one block of memory per frame, the arena, at places planned by when they live. Results, and values that some op may
// hold on to, have memory of their own and are released after their last use. Frames are kept between runs.
class RUNNEL_API Plan {
 public:
  // The graph must outlive the plan and not change any more.
  explicit Plan(const Graph& graph);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return static_cast<int>(results_.size()); }
  // `outputs` has num_outputs() elements.
  void run(Inputs inputs, Tensor* outputs) const;

  // Bytes of the arena of a run, and the largest sum of bytes in it that live at the same time.
  struct MemoryUse {
    int64_t arena = 0;
    int64_t live = 0;
  };
  const MemoryUse& memory_use() const { return memory_use_; }
  // The largest number of nodes that run at the same time (see executor/branches.h).
  int widest_group() const;

 private:
  struct Step {
    KernelFn kernel;
    const OpDef* op;
    const void* attrs;
    const DType* dtypes;
    const Node* node;
    uint32_t first_input;  // in input_slots_
    uint32_t num_inputs;
    uint32_t first_output;  // slot; the others follow
    uint32_t num_outputs;
    uint32_t first_shape;    // in shapes_, when `ready`
    uint32_t first_release;  // in releases_
    uint32_t num_releases;
    uint32_t num_last_uses;  // the releases, then the values that stay in the frame of a run on the host
    uint32_t group;          // steps from this one on that run at the same time; 1: it runs alone
    int chain;               // in chains_: this step and those after it run as that chain; -1: it runs by itself
    bool ready;              // shapes are known, checks were made
    bool allocate;           // the executor makes the outputs (else the kernel does)
  };
  struct Chain {
    BlockChain blocks;
    size_t length;  // in steps
  };
  // A value in the arena.
  struct Place {
    uint32_t slot;
    DType dtype;
    Shape shape;
    size_t offset;
  };
  struct Result {
    uint32_t slot;
    bool last;  // may be moved out of the frame
  };
  struct Frame {
    std::vector<Tensor> slots;
    std::vector<const Tensor*> inputs;  // per entry of input_slots_
    Ref<Buffer> arena;
    uint32_t first_fixed = UINT32_MAX;  // inputs from this one on keep their values from run to run
  };

 public:
  // A frame for several runs in a row: the iterations of a loop.
  class RUNNEL_API Runner {
   public:
    // All runs have the same inputs from number `first_fixed` on: those of the first run are kept.
    Runner(const Plan& plan, size_t first_fixed);
    ~Runner();
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    // The first `wanted` outputs.
    void run(Inputs inputs, Tensor* outputs, size_t wanted);

   private:
    const Plan& plan_;
    std::unique_ptr<Frame> frame_;
  };

 private:
  std::unique_ptr<Frame> acquire() const;
  void release(std::unique_ptr<Frame> frame) const;
  void execute(Frame& frame, Inputs inputs, Tensor* outputs, size_t wanted) const;
  void run_step(const Step& step, Frame& frame) const;
  void run_step_in_profile(const Step& step, Frame& frame) const;
  void run_chain(const Step* first, Frame& frame) const;
  template <bool kProfiled>
  void run_group(const Step* first, Frame& frame) const;
  void find_chains(const std::vector<int>& last_use, const std::vector<bool>& is_result, bool compiled);
  void plan_places(const std::vector<int>& last_use, const std::vector<bool>& is_result, bool in_place);
  void open_arena(Frame& frame) const;
  void close_arena(Frame& frame) const;
  void prepare_output(uint32_t slot, DType dtype, const Shape& shape, Frame& frame) const;
  bool is_fixed(const Frame& frame, uint32_t slot) const {
    return slot >= frame.first_fixed && slot < static_cast<uint32_t>(num_inputs_);
  }
  static bool variables_on_host(Inputs inputs);
  template <bool kProfiled>
  size_t run_on_host(Frame& frame) const;
  void run_chain_in_profile(const Step* first, Frame& frame) const;
  void run_group_in_profile(const Step* first, Frame& frame) const;
  bool gave_device_value(const Step& step, const Frame& frame) const;
  void run_on_devices(Frame& frame, size_t first) const;
  void run_by_dispatch(const Step& step, Frame& frame) const;
  [[noreturn]] void fail(const Error& e, const Step& step, const Frame& frame) const;

  std::string name_;
  int num_inputs_ = 0;
  uint32_t num_slots_ = 0;
  std::vector<Step> steps_;
  std::vector<Chain> chains_;
  std::vector<uint32_t> input_slots_;
  std::vector<Shape> shapes_;
  std::vector<uint32_t> releases_;
  std::vector<Result> results_;
  std::vector<Place> places_;
  std::vector<int> place_of_;  // by slot: in places_, -1: memory of its own
  MemoryUse memory_use_;
  std::vector<std::pair<uint32_t, Tensor>> constants_;
  std::vector<uint32_t> unused_inputs_;          // released before the first step
  mutable std::atomic<Frame*> spare_ = nullptr;  // the one that a single thread takes and gives back
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Frame>> more_;
};

}  // namespace runnel
