#pragma once

// One run of a call: its inputs made anew, with the state they refer to, and the ways to run it.
#include <nlohmann/json.hpp>
#include <vector>

#include "runnel/ops/lookup.h"
#include "runnel/ops/state.h"
#include "tests/interop/call.h"

namespace runnel::interop {

struct Prepared {
  std::vector<Tensor> in;
  std::vector<Variable> variables;
  std::vector<lookup::MutableHashTable> tables;

  explicit Prepared(const Call& call);
  nlohmann::json state() const;
};

std::vector<Tensor> run_in_graph(const Call& call, const std::vector<Tensor>& inputs, How how);

bool continuous(const Tensor& t);

// Weights in [-1, 1] that every float has exactly, none of them zero.
Tensor cotangent(const Tensor& like, size_t number);

}  // namespace runnel::interop
