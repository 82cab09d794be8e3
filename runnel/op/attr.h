#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "runnel/op/attr_value.h"
#include "runnel/op/fields.h"

namespace runnel {

// One attribute of an op: the member of its struct that lies `offset` bytes in and has the type of `default_value`.
struct RUNNEL_API AttrSpec {
  std::string name;
  AttrValue default_value;  // no default where `required`: then what the member begins with
  size_t offset;
  // The field's rule. Functions, tensors and DTypes that begin as nothing are required without saying so.
  bool required = false;
  std::vector<std::string> texts;
  int64_t minimum = AttrRule::kNoMinimum;
  uint32_t types = 0;

  AttrValue get(const void* attrs) const;
  void set(void* attrs, const AttrValue& value) const;  // of the same type
  bool has_default() const { return !required; }
  // Can a value of the right type be wrong?
  bool limited() const { return !texts.empty() || minimum != AttrRule::kNoMinimum || types != 0; }
  void check(const void* attrs) const;  // throws Error
};

// Attributes that outlive a call (tape, graph); null for an op without any.
using SharedAttrs = std::shared_ptr<const void>;

// What the registry knows about the attribute struct of an op.
struct RUNNEL_API AttrTable {
  std::vector<AttrSpec> specs;
  std::shared_ptr<void> (*make)() = nullptr;  // defaults
  SharedAttrs (*copy)(const void*) = nullptr;
  bool limited = false;  // any of them is: calls have something to check

  const AttrSpec* find(const std::string& name) const;
  void check(const void* attrs) const;  // all of them; throws Error
  void add(const char* name, AttrValue default_value, size_t offset, const AttrRule& rule);
};

template <class A>
AttrTable attr_table() {
  AttrTable table;
  if constexpr (!std::is_same_v<A, NoAttrs>) {
    const A defaults{};
    A::fields()([&](const auto& field) {
      const auto& value = defaults.*(field.member);
      table.add(field.name, value, reinterpret_cast<const char*>(&value) - reinterpret_cast<const char*>(&defaults),
                field.rule);
    });
    table.make = [] { return std::shared_ptr<void>(std::make_shared<A>()); };
    table.copy = [](const void* a) { return SharedAttrs(std::make_shared<const A>(*static_cast<const A*>(a))); };
  }
  return table;
}

RUNNEL_API const char* attr_type_name(const AttrValue& value);  // TensorFlow's: "int", "float", "list(int)", ...
RUNNEL_API std::string attr_to_string(const AttrValue& value);
RUNNEL_API std::vector<std::string> dtype_names(uint32_t mask);  // of a type set

}  // namespace runnel
