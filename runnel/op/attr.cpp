#include "runnel/op/attr.h"

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

}  // namespace

AttrValue AttrSpec::get(const void* attrs) const {
  const void* member = static_cast<const char*>(attrs) + offset;
  return std::visit([member]<class M>(const M&) { return AttrValue(*static_cast<const M*>(member)); }, default_value);
}

void AttrSpec::set(void* attrs, const AttrValue& value) const {
  void* member = static_cast<char*>(attrs) + offset;
  std::visit([&]<class M>(const M&) { *static_cast<M*>(member) = std::get<M>(value); }, default_value);
}

const AttrSpec* AttrTable::find(const std::string& name) const {
  for (const AttrSpec& s : specs) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

void AttrTable::add(const char* name, AttrValue default_value, size_t offset) {
  specs.push_back({name, std::move(default_value), offset});
}

const char* attr_type_name(const AttrValue& value) { return std::visit(TypeName{}, value); }

std::string attr_to_string(const AttrValue& value) {
  return std::visit([](const auto& v) { return one(v); }, value);
}

}  // namespace runnel
