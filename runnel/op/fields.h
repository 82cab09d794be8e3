#pragma once

// How structs of settings and attributes say what their members are called.

#include <cstdint>
#include <limits>

namespace runnel {

// What an attribute of an op may be, as TensorFlow's definition of the op has it. Every call is checked against it.
struct AttrRule {
  static constexpr int64_t kNoMinimum = std::numeric_limits<int64_t>::min();

  bool required = false;         // no default: the member's initializer is only where a call begins
  const char* texts = nullptr;   // strings, and those of a list: one of "SAME|VALID"
  int64_t minimum = kNoMinimum;  // an int: the smallest; a list: the fewest elements
  uint32_t types = 0;            // DTypes, and those of a list: one of the mask of a type set; 0: any
};

// An op's attributes are a plain struct with a member per attribute, default values, and a list of its fields:
//   struct LeakyReluAttrs {
//     double alpha = 0.2;
//     static constexpr auto fields() { return field_list(field("alpha", &LeakyReluAttrs::alpha)); }
//   };
// Member types: int64_t, double, bool, std::string, DType, PartialShape, vectors of these, Tensor, FuncAttr, a vector
// of FuncAttr. A field may have a rule: field("padding", &A::padding, {.required = true, .texts = "SAME|VALID"}).
template <class C, class M>
struct Field {
  const char* name;
  M C::*member;
  const char* doc;  // a few words; "" where the name says it all
  AttrRule rule;    // of an op's attribute
};
template <class C, class M>
constexpr Field<C, M> field(const char* name, M C::*member, const char* doc = "") {
  return {name, member, doc, {}};
}
template <class C, class M>
constexpr Field<C, M> field(const char* name, M C::*member, const AttrRule& rule) {
  return {name, member, "", rule};
}
// A list of fields is a function that shows each of them to `visit`. (A std::tuple of them would say the same, but each
// takes a tenth of a second to compile.)
template <class... F>
constexpr auto field_list(F... fields) {
  return [=](const auto& visit) { (visit(fields), ...); };
}
// The fields of several lists, one after the other.
template <class... Lists>
constexpr auto joined_fields(Lists... lists) {
  return [=](const auto& visit) { (lists(visit), ...); };
}

struct NoAttrs {
  static constexpr auto fields() { return field_list(); }
};

}  // namespace runnel
