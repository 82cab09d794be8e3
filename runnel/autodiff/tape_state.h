#pragma once

// Internal: what a tape has recorded.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runnel/autodiff/id_map.h"
#include "runnel/autodiff/record.h"
#include "runnel/autodiff/tape.h"
#include "runnel/autodiff/tape_turns.h"
#include "runnel/autodiff/unread_values.h"
#include "runnel/base/small_vector.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/op_def.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// Tapes began or ended: looks anew whether this thread has one that may record.
void refresh_tapes_of_this_thread();

// Would a tape watch it when it is read?
bool is_trainable_variable(const Tensor& handle);

// Every tensor the tape follows has an id; entry tensors lie one after the other in `tensors`.
class GradientTape::State {
 public:
  explicit State(const GradientTapeOptions& options) : options_(options), level_(thread_context().tape_level) {}

  // --- on the thread that made the tape ---

  void record(const OpDef& op, Inputs inputs, const void* attrs, const Tensor* outputs, int num_outputs);
  void record_step(Inputs inputs, const std::vector<Tensor>& outputs, const std::shared_ptr<const BackwardFn>& grad);
  bool follows(const std::vector<Tensor>& inputs) const;

  // --- on any thread ---

  // A question by this thread, from its beginning to its end; an Error while another thread asks.
  class Question {
   public:
    Question(State& tape, const char* what);
    ~Question();
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;

   private:
    State& tape_;
  };
  // Inside a question. With `release` every step is forgotten once the walk has passed it, so that memory falls on the
  // way back.
  std::vector<Gradient> gradient(const std::vector<Tensor>& targets, const std::vector<GradSource>& sources,
                                 const std::vector<Tensor>& seeds, bool release);
  bool spent = false;  // gradient() was called on a tape that is not persistent

  void watch(const Tensor& t);
  std::vector<Tensor> watched() const;
  void clear();

  // The thread that records looks before every step. It is told of ops meanwhile: nobody could tell it, from another
  // thread or from inside a trace, that a tape goes on.
  void pause() { pauses_.fetch_add(1, std::memory_order_acq_rel); }
  void resume() { pauses_.fetch_sub(1, std::memory_order_acq_rel); }
  void end() {
    pause();
    ended_.store(true, std::memory_order_release);
    refresh_tapes_of_this_thread();
  }
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  bool is_paused() const { return pauses_.load(std::memory_order_acquire) > 0; }
  bool records_at(uint64_t level) const { return level_ == level && !is_paused(); }
  bool may_record_at(uint64_t level) const { return level_ == level && !has_ended(); }
  bool was_made_here() const { return made_on_ == std::this_thread::get_id(); }
  const GradientTapeOptions& options() const { return options_; }

 private:
  struct Entry {
    const OpDef* op;  // null: `attrs` is a BackwardFn
    SharedAttrs attrs;
    uint32_t first;  // of the inputs in tensors, outputs follow
    uint32_t inputs;
    uint32_t outputs;
  };
  struct Content {
    int32_t num_ids = 0;
    IdMap ids;
    int32_t id_of(const Tensor& t) const;  // IdMap::kAbsent: it is not followed
    std::vector<Entry> entries;
    std::vector<Tensor> tensors;
    std::vector<int32_t> tensor_ids;
    UnreadValues unread;
    std::vector<Tensor> watched;  // keeps watched tensors alive: their addresses are keys

    void reserve();
  };
  using InputIds = SmallVector<int32_t, 16>;

  // These under the lock.
  void require_turn(const char* what) const;
  bool may_write(Inputs inputs, bool reads_variables) const;
  bool is_followed(const Tensor& t, bool reads_variables) const;
  void follow(const Tensor& t);
  void follow_variables(Inputs inputs);
  InputIds ids_of(Inputs inputs) const;  // empty when none is followed
  void push(const OpDef* op, SharedAttrs attrs, Inputs inputs, const InputIds& ids, const Tensor* outputs,
            int num_outputs);

  void back(const Entry& e, std::vector<Gradient>& grads, const std::vector<bool>& needed);

  const GradientTapeOptions options_;
  const uint64_t level_;
  const std::thread::id made_on_ = std::this_thread::get_id();
  std::atomic<int> pauses_ = 0;
  std::atomic<bool> ended_ = false;
  mutable TapeTurns turns_;
  Content content_;
};

}  // namespace runnel
