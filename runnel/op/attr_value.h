#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

// A function as an attribute (of calls, cond, while_loop); the graph library derives the body from it.
class RUNNEL_API FunctionBody {
 public:
  virtual ~FunctionBody() = default;
};
struct FuncAttr {
  std::string name;
  std::shared_ptr<const FunctionBody> body;
  friend bool operator==(const FuncAttr& a, const FuncAttr& b) { return a.body == b.body && a.name == b.name; }
};

// The value of an op's attribute when the op is reached by name (Python, graphs, files).
using AttrValue = std::variant<int64_t, double, bool, std::string, DType, PartialShape, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, std::vector<DType>,
                               std::vector<PartialShape>, Tensor, FuncAttr, std::vector<FuncAttr>>;

}  // namespace runnel
