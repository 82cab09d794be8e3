#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
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

// An op's attributes are a plain struct with a member per attribute, default values, and a list of its fields:
//   struct LeakyReluAttrs {
//     double alpha = 0.2;
//     static constexpr auto fields() { return field_list(field("alpha", &LeakyReluAttrs::alpha)); }
//   };
// Member types: int64_t, double, bool, std::string, DType, PartialShape, vectors of these, Tensor, FuncAttr, a vector
// of FuncAttr.
template <class C, class M>
struct Field {
  const char* name;
  M C::*member;
};
template <class C, class M>
constexpr Field<C, M> field(const char* name, M C::*member) {
  return {name, member};
}
// A list of fields is a function that shows each of them to `visit`. (A std::tuple of them would say the same, but each
// takes a tenth of a second to compile.)
template <class... F>
constexpr auto field_list(F... fields) {
  return [=](const auto& visit) { (visit(fields), ...); };
}
// The fields of one list, then those of another.
template <class A, class B>
constexpr auto joined_fields(A first, B second) {
  return [=](const auto& visit) {
    first(visit);
    second(visit);
  };
}

struct NoAttrs {
  static constexpr auto fields() { return field_list(); }
};

// One attribute of an op: the member of its struct that lies `offset` bytes in and has the type of `default_value`.
struct RUNNEL_API AttrSpec {
  std::string name;
  AttrValue default_value;  // a DType that is `invalid` means: no default, must be given
  size_t offset;

  AttrValue get(const void* attrs) const;
  void set(void* attrs, const AttrValue& value) const;  // of the same type
  bool has_default() const {
    const DType* type = std::get_if<DType>(&default_value);
    return type == nullptr || *type != DType::invalid;
  }
};

// Attributes that outlive a call (tape, graph); null for an op without any.
using SharedAttrs = std::shared_ptr<const void>;

// What the registry knows about the attribute struct of an op.
struct RUNNEL_API AttrTable {
  std::vector<AttrSpec> specs;
  std::shared_ptr<void> (*make)() = nullptr;  // defaults
  SharedAttrs (*copy)(const void*) = nullptr;

  const AttrSpec* find(const std::string& name) const;
  void add(const char* name, AttrValue default_value, size_t offset);
};

template <class A>
AttrTable attr_table() {
  AttrTable table;
  if constexpr (!std::is_same_v<A, NoAttrs>) {
    const A defaults{};
    A::fields()([&](const auto& field) {
      const auto& value = defaults.*(field.member);
      table.add(field.name, value, reinterpret_cast<const char*>(&value) - reinterpret_cast<const char*>(&defaults));
    });
    table.make = [] { return std::shared_ptr<void>(std::make_shared<A>()); };
    table.copy = [](const void* a) { return SharedAttrs(std::make_shared<const A>(*static_cast<const A*>(a))); };
  }
  return table;
}

RUNNEL_API const char* attr_type_name(const AttrValue& value);  // TensorFlow's: "int", "float", "list(int)", ...
RUNNEL_API std::string attr_to_string(const AttrValue& value);

}  // namespace runnel
