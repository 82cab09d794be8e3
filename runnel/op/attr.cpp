#include "runnel/op/attr.h"

#include <algorithm>
#include <utility>

#include "runnel/base/format.h"

namespace runnel {
namespace {

struct TypeName {
  const char* operator()(int64_t) const { return "int"; }
  const char* operator()(double) const { return "float"; }
  const char* operator()(bool) const { return "bool"; }
  const char* operator()(const std::string&) const { return "string"; }
  const char* operator()(DType) const { return "type"; }
  const char* operator()(const PartialShape&) const { return "shape"; }
  const char* operator()(const std::vector<int64_t>&) const { return "list(int)"; }
  const char* operator()(const std::vector<double>&) const { return "list(float)"; }
  const char* operator()(const std::vector<std::string>&) const { return "list(string)"; }
  const char* operator()(const std::vector<DType>&) const { return "list(type)"; }
  const char* operator()(const std::vector<PartialShape>&) const { return "list(shape)"; }
  const char* operator()(const Tensor&) const { return "tensor"; }
  const char* operator()(const FuncAttr&) const { return "func"; }
  const char* operator()(const std::vector<FuncAttr>&) const { return "list(func)"; }
};

std::string one(int64_t v) { return std::to_string(v); }
std::string one(double v) { return fmt::format("{}", v); }
std::string one(bool v) { return v ? "true" : "false"; }
std::string one(const std::string& v) { return '"' + v + '"'; }
std::string one(DType v) { return dtype_name(v); }
std::string one(const PartialShape& v) { return v.str(); }
std::string one(const FuncAttr& v) { return v.name; }
std::string one(const Tensor& v) { return v.defined() ? v.repr() : "none"; }
template <class T>
std::string one(const std::vector<T>& list) {
  std::string text = "[";
  for (const T& v : list) text += (text.size() > 1 ? ", " : "") + one(v);
  return text + "]";
}

std::vector<std::string> split_texts(const char* texts) {
  std::vector<std::string> list;
  if (!texts) return list;
  std::string rest = texts;
  for (size_t end = 0; (end = rest.find('|')) != std::string::npos; rest = rest.substr(end + 1)) {
    list.push_back(rest.substr(0, end));
  }
  list.push_back(rest);
  return list;
}

// A default that stands for none.
bool is_nothing(const AttrValue& value) {
  if (const DType* type = std::get_if<DType>(&value)) return *type == DType::invalid;
  if (const Tensor* tensor = std::get_if<Tensor>(&value)) return !tensor->defined();
  return std::holds_alternative<FuncAttr>(value) || std::holds_alternative<std::vector<FuncAttr>>(value);
}

[[noreturn]] void not_allowed(const AttrSpec& spec, const std::string& value, const std::vector<std::string>& allowed) {
  throw invalid_argument("Value for attr '{}' of {} is not in the list of allowed values: {}", spec.name, value,
                         fmt::join(allowed, ", "));
}

// Is one value, or one of a list, among those that are allowed?
template <class T>
void check_allowed(const AttrSpec&, const T&) {}
void check_allowed(const AttrSpec& spec, const std::string& value) {
  if (spec.texts.empty() || std::find(spec.texts.begin(), spec.texts.end(), value) != spec.texts.end()) return;
  std::vector<std::string> quoted;
  for (const std::string& text : spec.texts) quoted.push_back(one(text));
  not_allowed(spec, one(value), quoted);
}
void check_allowed(const AttrSpec& spec, const DType& value) {
  if (spec.types == 0 || (spec.types >> static_cast<int>(value) & 1) != 0) return;
  not_allowed(spec, one(value), dtype_names(spec.types));
}

template <class T>
void check_value(const AttrSpec& spec, const T& value) {
  check_allowed(spec, value);
}
void check_value(const AttrSpec& spec, const int64_t& value) {
  if (value >= spec.minimum) return;
  throw invalid_argument("Value for attr '{}' of {} must be at least minimum {}", spec.name, value, spec.minimum);
}
template <class T>
void check_value(const AttrSpec& spec, const std::vector<T>& list) {
  if (static_cast<int64_t>(list.size()) < spec.minimum) {
    throw invalid_argument("Length for attr '{}' of {} must be at least minimum {}", spec.name, list.size(),
                           spec.minimum);
  }
  for (const T& value : list) check_allowed(spec, value);
}

}  // namespace

AttrValue AttrSpec::get(const void* attrs) const {
  const void* member = static_cast<const char*>(attrs) + offset;
  return std::visit([member]<class M>(const M&) { return AttrValue(*static_cast<const M*>(member)); }, default_value);
}

void AttrSpec::set(void* attrs, const AttrValue& value) const {
  void* member = static_cast<char*>(attrs) + offset;
  std::visit([&]<class M>(const M&) { *static_cast<M*>(member) = std::get<M>(value); }, default_value);
}

void AttrSpec::check(const void* attrs) const {
  const void* member = static_cast<const char*>(attrs) + offset;
  std::visit([&]<class M>(const M&) { check_value(*this, *static_cast<const M*>(member)); }, default_value);
}

const AttrSpec* AttrTable::find(const std::string& name) const {
  for (const AttrSpec& s : specs) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

void AttrTable::check(const void* attrs) const {
  for (const AttrSpec& s : specs) {
    if (s.limited()) s.check(attrs);
  }
}

void AttrTable::add(const char* name, AttrValue default_value, size_t offset, const AttrRule& rule) {
  const bool required = rule.required || is_nothing(default_value);
  specs.push_back({.name = name,
                   .default_value = std::move(default_value),
                   .offset = offset,
                   .required = required,
                   .texts = split_texts(rule.texts),
                   .minimum = rule.minimum,
                   .types = rule.types});
  limited = limited || specs.back().limited();
}

const char* attr_type_name(const AttrValue& value) { return std::visit(TypeName{}, value); }

std::string attr_to_string(const AttrValue& value) {
  return std::visit([](const auto& v) { return one(v); }, value);
}

std::vector<std::string> dtype_names(uint32_t mask) {
  std::vector<std::string> names;
  for (int i = 1; i < kNumDTypes; ++i) {
    if (mask >> i & 1) names.emplace_back(dtype_name(static_cast<DType>(i)));
  }
  return names;
}

}  // namespace runnel
