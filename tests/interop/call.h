#pragma once

// A call of an op as data: what it is given, by which names TensorFlow knows it, and what came of it.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runnel/op/attr_value.h"
#include "runnel/op/op_def.h"

namespace runnel::interop {

// An input: a value, or what the state behind a handle is made of, anew for every run.
struct Given {
  enum class Kind { value, variable, list, table };
  Kind kind = Kind::value;
  Tensor value = {};               // of a variable: what it holds at first; of a table: its keys
  Tensor table_values = {};        // one for each key: scalars, or vectors, as the values of the table then are
  bool dense = false;              // a dense table, with -7 and -8 as its marks
  std::vector<Tensor> items = {};  // of a list; those nobody wrote are undefined
  DType element_dtype = DType::invalid;
  PartialShape element_shape = PartialShape::unknown();
  int64_t max_num_elements = -1;

  bool has_elements() const { return kind == Kind::value || kind == Kind::variable; }
};

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

struct Call {
  const OpDef* op;
  std::vector<Given> in;
  Attributes attrs;
  std::string broken = {};  // why it cannot be told to TensorFlow; empty: it can

  const ArgSpec& spec(size_t i) const { return op->input_spec(static_cast<int>(i), static_cast<int>(in.size())); }
  AttrValue* attr(const std::string& name);
};

// How a call runs here: at once, or in a graph that knows only the ranks of its inputs, or not even them.
enum class How { eager, ranks, nothing };

// The samples of the op. Ops on variables and tables, which have none, get inputs by what the declaration says of them.
std::vector<Call> stated_calls(const OpDef& op);

// What the op's attributes are where nobody says otherwise.
Attributes default_attributes(const OpDef& op);

// {"op": ..., "attrs": {...}, "inputs": [[name, [tensor...]]...]}
nlohmann::json to_json(const Call& call, How how);

// What came of it: "out", "after" (the state), and where inputs and outputs are continuous, "dy" and "grads"; or
// "error", or "foreign" for an exception that is no runnel::Error. `stage` is called with the name of what is run next.
nlohmann::json answer(const Call& call, How how, void (*stage)(const char*));

int64_t num_elements(const nlohmann::json& answer);  // of all outputs

}  // namespace runnel::interop
