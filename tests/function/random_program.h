#pragma once

// Programs as data, so that the same one can be run eagerly, traced, and printed.
#include <cstdint>
#include <string>
#include <vector>

#include "runnel/runnel.h"

namespace runnel::random_program {

using Tensors = std::vector<Tensor>;
using Dims64 = std::vector<int64_t>;

struct Instr;

// Values have numbers that are unique in the whole program. A block sees those of the blocks around it, a function's
// block only its parameters.
struct Block {
  std::vector<int> params;
  std::vector<Instr> body;
  std::vector<int> results;
};

struct Instr {
  std::string op;
  std::vector<int> in;
  std::vector<int> out;
  std::vector<Dims64> shapes;  // of the inputs: a traced tensor may not know its own
  std::vector<int64_t> ints;   // each op makes of them what it needs
  double number = 0;
  int target = -1;              // the variable or function
  std::vector<Block> blocks{};  // arms, or the body of a loop
};

struct Program {
  uint64_t seed = 0;
  bool large = false;     // values that the executor handles in blocks and the pool in ranges
  bool wild = false;      // NaN, infinities and ops that make them
  bool tame = false;      // no NaN, no infinity, no fast growth: sums in another order are nearly the same
  bool branches = false;  // has cond, switch or loops somewhere
  bool jumps = false;     // a small change of an input may change the result by much
  int order = 0;          // of derivatives
  bool train = false;     // subtracts gradients from the variables
  DType dtype = DType::float32;
  std::vector<Tensors> calls;  // the arguments of every call
  Tensors variables;           // the values they start with
  std::vector<Block> functions;
  Block main;
};

inline std::string text_of(const Block& block, const std::string& indent) {
  std::string s;
  const auto list = [](const std::vector<int>& ids) {
    std::string out;
    for (const int id : ids) out += " %" + std::to_string(id);
    return out;
  };
  for (const Instr& i : block.body) {
    s += indent + (i.out.empty() ? "" : list(i.out).substr(1) + " = ") + i.op;
    if (i.target >= 0) s += " @" + std::to_string(i.target);
    s += list(i.in);
    for (const Dims64& d : i.shapes) s += " " + Shape(d).str();
    s += " ints";
    for (const int64_t k : i.ints) s += " " + std::to_string(k);
    s += " number " + std::to_string(i.number) + "\n";
    for (const Block& b : i.blocks) s += indent + " block" + list(b.params) + "\n" + text_of(b, indent + "  ");
  }
  return s + indent + "return" + list(block.results) + "\n";
}

inline std::string text_of(const Program& p) {
  std::string s = "program of seed " + std::to_string(p.seed) + ": " + dtype_name(p.dtype);
  s += p.large ? " large" : "";
  s += p.wild ? " wild" : p.tame ? " tame" : "";
  s += p.order > 0 ? " derivatives of order " + std::to_string(p.order) : "";
  s += p.train ? " training\n" : "\n";
  for (size_t k = 0; k < p.variables.size(); ++k) {
    s += "variable @" + std::to_string(k) + " " + dtype_name(p.variables[k].dtype()) + p.variables[k].shape().str() +
         "\n";
  }
  for (size_t k = 0; k < p.functions.size(); ++k) {
    s += "function @" + std::to_string(k);
    for (const int id : p.functions[k].params) s += " %" + std::to_string(id);
    s += "\n" + text_of(p.functions[k], "  ");
  }
  s += "main";
  for (size_t k = 0; k < p.main.params.size(); ++k) {
    const Tensor& t = p.calls[0][k];
    s += " %" + std::to_string(p.main.params[k]) + ":" + dtype_name(t.dtype()) + t.shape().str();
  }
  return s + "\n" + text_of(p.main, "  ");
}

}  // namespace runnel::random_program
