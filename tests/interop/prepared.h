#pragma once

// One run of a call: its inputs made anew, with the state they refer to, and the ways to run it.
#include <nlohmann/json.hpp>
#include <vector>

#include "runnel/autodiff/tape.h"
#include "runnel/ops/state.h"
#include "tests/interop/call.h"

namespace runnel::interop {

struct Prepared {
  std::vector<Tensor> in;
  std::vector<Variable> variables;
  struct Table {
    Tensor handle;
    DType key, value;
  };
  std::vector<Table> tables;

  explicit Prepared(const Call& call);
  nlohmann::json state() const;
};

std::vector<Tensor> run_in_graph(const Call& call, const std::vector<Tensor>& inputs, How how);

// What a derivative is asked for: the continuous outputs of the call, weighted, by its continuous inputs.
struct Derivative {
  std::vector<size_t> sources;  // numbers of the inputs in `by`
  std::vector<GradSource> by;
  std::vector<Tensor> of;
  std::vector<Tensor> dy;  // in [-1, 1], numbers that every float has exactly, none of them zero

  bool empty() const { return by.empty() || of.empty(); }
};
// Runs the call under the tape.
Derivative derivative(const Call& call, const Prepared& prepared, GradientTape& tape);

}  // namespace runnel::interop
