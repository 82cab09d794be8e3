#pragma once

// How structs of settings and attributes say what their members are called.

namespace runnel {

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
  const char* doc;  // a few words; "" where the name says it all
};
template <class C, class M>
constexpr Field<C, M> field(const char* name, M C::*member, const char* doc = "") {
  return {name, member, doc};
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
