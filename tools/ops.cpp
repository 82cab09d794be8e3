// `runnel ops`: the registry, for people and for programs.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/op/registry.h"
#include "tools/attr_json.h"
#include "tools/commands.h"

namespace runnel::tools {
namespace {

using nlohmann::ordered_json;

std::vector<std::string> aliases_of(const OpDef& op) {
  std::vector<std::string> names;
  for (const auto& [older, name] : registry().aliases()) {
    if (registry().find(older) == &op) names.push_back(older);
  }
  return names;
}

// The attribute that says an input's or output's dtype; empty when the dtype is fixed.
std::string type_attr(const OpDef& op, const ArgSpec& arg) {
  if (arg.type_var >= 0) return op.type_vars[static_cast<size_t>(arg.type_var)].name;
  return arg.type_attr.empty() ? arg.type_list_attr : arg.type_attr;
}

ordered_json arg_to_json(const OpDef& op, const ArgSpec& arg) {
  ordered_json j = {{"name", arg.name}};
  if (const std::string attr = type_attr(op, arg); !attr.empty()) {
    j["type_attr"] = attr;
  } else {
    j["type"] = dtype_name(arg.dtype);
  }
  j["list"] = arg.is_list();
  if (!arg.count.empty()) j["number_attr"] = arg.count;
  if (arg.host_memory) j["host_memory"] = true;
  return j;
}

// Attributes in TensorFlow's sense: also what follows from the inputs (their dtypes, the lengths of lists).
ordered_json attributes_to_json(const OpDef& op) {
  ordered_json list = ordered_json::array();
  for (const TypeVar& var : op.type_vars) {
    ordered_json j = {{"name", var.name}, {"type", "type"}, {"allowed", dtype_names(var.allowed)}};
    if (var.default_type != DType::invalid) j["default"] = dtype_name(var.default_type);
    list.push_back(std::move(j));
  }
  for (const AttrSpec& spec : op.attrs.specs) {
    ordered_json j = {{"name", spec.name}, {"type", attr_type_name(spec.default_value)}};
    if (spec.has_default()) j["default"] = attr_to_json(spec.default_value);
    if (!spec.texts.empty()) j["allowed"] = spec.texts;
    if (spec.types != 0) j["allowed"] = dtype_names(spec.types);
    if (spec.minimum != AttrRule::kNoMinimum) j["minimum"] = spec.minimum;
    list.push_back(std::move(j));
  }
  for (const ArgSpec& arg : op.inputs) {
    const std::string& name = arg.count.empty() ? arg.type_list_attr : arg.count;
    const bool known = std::any_of(list.begin(), list.end(), [&](const auto& j) { return j["name"] == name; });
    if (!arg.is_list() || known) continue;
    ordered_json j = {{"name", name}, {"type", arg.count.empty() ? "list(type)" : "int"}};
    if (arg.fewest != AttrRule::kNoMinimum) j["minimum"] = arg.fewest;
    list.push_back(std::move(j));
  }
  return list;
}

ordered_json to_json(const OpDef& op) {
  ordered_json inputs = ordered_json::array();
  ordered_json outputs = ordered_json::array();
  for (const ArgSpec& arg : op.inputs) inputs.push_back(arg_to_json(op, arg));
  for (const ArgSpec& arg : op.outputs) outputs.push_back(arg_to_json(op, arg));
  ordered_json j = {{"name", op.name}, {"inputs", inputs}, {"outputs", outputs}};
  j["attributes"] = attributes_to_json(op);
  j["dtypes"] = op.type_vars.empty() ? std::vector<std::string>{} : dtype_names(op.type_vars[0].allowed);
  j["gradient"] = op.grad != nullptr;
  j["stateful"] = op.stateful;
  j["doc"] = op.doc;
  j["aliases"] = aliases_of(op);
  return j;
}

std::string signature(const OpDef& op) {
  auto names = [](const std::vector<ArgSpec>& args) {
    std::string text;
    for (const ArgSpec& a : args) text += (text.empty() ? "" : ", ") + a.name + (a.is_list() ? "..." : "");
    return text;
  };
  return fmt::format("{}({}) -> {}", op.name, names(op.inputs), op.outputs.empty() ? "nothing" : names(op.outputs));
}

void print_args(const OpDef& op, const char* title, const std::vector<ArgSpec>& args) {
  if (args.empty()) return;
  fmt::print("{}\n", title);
  for (const ArgSpec& a : args) {
    const std::string attr = type_attr(op, a);
    fmt::print("  {:<20} {}{}{}\n", a.name, attr.empty() ? dtype_name(a.dtype) : attr, a.is_list() ? ", a list" : "",
               a.host_memory ? ", read on the host" : "");
  }
}

void print_page(const OpDef& op) {
  fmt::print("{}\n  {}\n", signature(op), op.doc);
  if (const auto older = aliases_of(op); !older.empty()) fmt::print("also called {}\n", fmt::join(older, ", "));
  print_args(op, "inputs", op.inputs);
  print_args(op, "outputs", op.outputs);
  const ordered_json attributes = attributes_to_json(op);
  if (!attributes.empty()) fmt::print("attributes\n");
  for (const ordered_json& a : attributes) {
    std::string text = fmt::format("  {:<20} {}", a["name"].get<std::string>(), a["type"].get<std::string>());
    if (a.contains("default")) text += " = " + a["default"].dump();
    if (a.contains("minimum")) text += fmt::format(" >= {}", a["minimum"].get<int64_t>());
    if (a.contains("allowed")) {
      text += fmt::format(": {}", fmt::join(a["allowed"].get<std::vector<std::string>>(), ", "));
    }
    fmt::print("{}\n", text);
  }
  fmt::print("gradient: {}{}\n", op.grad ? "yes" : "no", op.stateful ? "; stateful" : "");
}

}  // namespace

void add_ops(CLI::App& app) {
  struct Arguments {
    std::string name;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* ops = app.add_subcommand("ops", "List the ops, or describe one");
  ops->add_option("name", arguments->name, "One op, by its name or an older one")->type_name("NAME");
  ops->add_flag("--json", arguments->json, "Print a JSON list with everything known of each op");
  ops->callback([arguments] {
    std::vector<const OpDef*> list = registry().all();
    if (!arguments->name.empty()) list = {&registry().get(arguments->name)};
    if (arguments->json) {
      ordered_json all = ordered_json::array();
      for (const OpDef* op : list) all.push_back(to_json(*op));
      fmt::print("{}\n", all.dump(1));
      return;
    }
    for (const OpDef* op : list) {
      if (op != list.front()) fmt::print("\n");
      print_page(*op);
    }
  });
}

}  // namespace runnel::tools
