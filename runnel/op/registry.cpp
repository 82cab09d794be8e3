#include "runnel/op/registry.h"

#include "runnel/base/format.h"

namespace runnel {

void register_all_ops(Registry& r);  // runnel.cpp: the one list

OpDef& Registry::add(const char* name) {
  auto [it, fresh] = ops_.try_emplace(name, std::make_unique<OpDef>());
  if (!fresh) throw make_error(Code::already_exists, "op '{}' is declared twice", name);
  it->second->name = name;
  return *it->second;
}

void Registry::alias(const char* older, const char* name) { aliases_[older] = name; }

void Registry::set_kernel(std::string_view op, DeviceKind kind, DType dtype, KernelFn kernel) {
  auto it = ops_.find(get(op).name);
  it->second->kernels[static_cast<size_t>(kind)][static_cast<size_t>(dtype)] = kernel;
}

const OpDef* Registry::find(std::string_view name) const {
  if (auto it = ops_.find(name); it != ops_.end()) return it->second.get();
  if (auto it = aliases_.find(name); it != aliases_.end()) return find(it->second);
  return nullptr;
}

const OpDef& Registry::get(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  throw make_error(Code::not_found, "no op is called '{}'", name);
}

std::vector<const OpDef*> Registry::all() const {
  std::vector<const OpDef*> list;
  for (const auto& [name, op] : ops_) list.push_back(op.get());
  return list;
}

Registry& mutable_registry() {
  static auto* r = [] {
    auto* made = new Registry;
    register_all_ops(*made);
    return made;
  }();
  return *r;
}

const Registry& registry() { return mutable_registry(); }

}  // namespace runnel
