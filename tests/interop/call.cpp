#include "tests/interop/call.h"
#include "runnel/tensor/type_sets.h"

#include <optional>

#include "runnel/ops/lookup.h"
#include "runnel/ops/state.h"
#include "runnel/ops/tensor_list.h"
#include "tests/interop/tensor_json.h"
#include "tools/attr_json.h"

namespace runnel::interop {
namespace {

using nlohmann::json;

Given given(const Tensor& t, std::string& broken) {
  Given g;
  if (t.dtype() == DType::variant) {
    if (t.rank() != 0 || !t.data<VariantValue>()->object) {
      broken = "a variant that holds no list";
      return g;
    }
    const auto* list = dynamic_cast<const TensorList*>(t.data<VariantValue>()->object.get());
    if (!list) {
      broken = "a variant that holds no list";
      return g;
    }
    g.kind = Given::Kind::list;
    g.items = list->items();
    g.element_dtype = list->element_dtype();
    g.element_shape = list->element_shape();
    g.max_num_elements = list->max_num_elements();
    for (const Tensor& item : g.items) {
      if (item.defined() && !data_types.contains(item.dtype())) broken = "a list of handles";
    }
  } else if (t.dtype() == DType::resource) {
    broken = "a handle to state of a sample";
  } else {
    g.value = t;
  }
  return g;
}

Attributes attributes(const OpDef& op, const void* attrs) {
  Attributes all;
  for (const AttrSpec& spec : op.attrs.specs) all.emplace_back(spec.name, attrs ? spec.get(attrs) : spec.default_value);
  return all;
}

bool has_functions(const OpDef& op) {
  for (const AttrSpec& attr : op.attrs.specs) {
    if (std::holds_alternative<FuncAttr>(attr.default_value)) return true;
    if (std::holds_alternative<std::vector<FuncAttr>>(attr.default_value)) return true;
  }
  return false;
}

enum class TableKind { scalars, vectors, dense };
constexpr TableKind kTableKinds[] = {TableKind::scalars, TableKind::vectors, TableKind::dense};

// An input of an op on a table.
std::optional<Given> of_table(const ArgSpec& arg, TableKind kind) {
  const bool scalars = kind == TableKind::scalars;
  if (arg.name == "table_handle") {
    return Given{.kind = Given::Kind::table,
                 .value = Tensor::of<int64_t>({1, 2, 3}),
                 .table_values = scalars ? Tensor{1.f, 2.f, 3.f} : Tensor{{1.f, 4.f}, {2.f, 5.f}, {3.f, 6.f}},
                 .dense = kind == TableKind::dense};
  }
  if (arg.name == "keys") return Given{.value = Tensor::of<int64_t>({2, 5})};
  if (arg.name == "default_value") return Given{.value = scalars ? Tensor(-1.f) : Tensor{-1.f, -2.f}};
  if (arg.name == "values") return Given{.value = scalars ? Tensor{7.f, 8.f} : Tensor{{7.f, 8.f}, {9.f, 10.f}}};
  return std::nullopt;
}

// An input of an op on variables that no sample states: whole rows where the name says that they are written, rows that
// are named, else a number. Nothing where the declaration does not tell.
std::optional<Given> undeclared(const OpDef& op, const ArgSpec& arg, bool by_rows) {
  if (arg.dtype == DType::resource) {
    if (arg.name == "iterator") return std::nullopt;
    return Given{.kind = Given::Kind::variable, .value = Tensor{{0.5f, 1.f}, {1.5f, 2.f}, {3.f, 0.25f}, {1.f, 1.f}}};
  }
  if (arg.name == "indices") return Given{.value = Tensor{2, 0}};
  if (arg.name == "lr_power") return Given{.value = Tensor(-0.5f)};
  const Tensor whole{{1.5f, -0.5f}, {2.f, 0.25f}, {-3.f, 1.f}, {0.75f, 4.f}};
  if (arg.name == "grad" || arg.name == "value" || arg.name == "updates" || arg.name == "delta") {
    return Given{.value = by_rows ? whole.rows(0, 2) : whole};
  }
  if (arg.type_var >= 0) {
    const TypeVar& var = op.type_vars[static_cast<size_t>(arg.type_var)];
    return Given{.value = var.allows(float32) ? Tensor(0.25f) : Tensor(1)};
  }
  return std::nullopt;
}

bool is_on_table(const OpDef& op) {
  return !op.inputs.empty() && op.inputs[0].dtype == DType::resource && op.inputs[0].name == "table_handle";
}

std::optional<Call> call_on_state(const OpDef& op, TableKind kind) {
  Call call{.op = &op, .in = {}, .attrs = attributes(op, nullptr)};
  bool by_rows = false;
  bool handles = false;
  for (const ArgSpec& arg : op.inputs) {
    by_rows = by_rows || arg.name == "indices";
    handles = handles || arg.dtype == DType::resource;
  }
  if (!handles && (!op.inputs.empty() || !op.outputs.empty())) return std::nullopt;
  for (const ArgSpec& arg : op.inputs) {
    const std::optional<Given> g = is_on_table(op) ? of_table(arg, kind) : undeclared(op, arg, by_rows);
    if (!g || arg.is_list()) return std::nullopt;
    call.in.push_back(*g);
  }
  if (AttrValue* dtype = call.attr("dtype"); dtype && std::holds_alternative<DType>(*dtype)) *dtype = float32;
  return call;
}

json given_to_json(const Given& g) {
  switch (g.kind) {
    case Given::Kind::value: return tensor_to_json(g.value);
    case Given::Kind::variable: return {{"variable", tensor_to_json(g.value)}};
    case Given::Kind::table:
      return {{"table", {tensor_to_json(g.value), tensor_to_json(g.table_values)}}, {"dense", g.dense}};
    case Given::Kind::list: break;
  }
  return {{"list", list_to_json(g.items, g.element_dtype, g.element_shape, g.max_num_elements)}};
}

}  // namespace

Attributes default_attributes(const OpDef& op) { return attributes(op, nullptr); }

AttrValue* Call::attr(const std::string& name) {
  for (auto& [each, value] : attrs) {
    if (each == name) return &value;
  }
  return nullptr;
}

std::vector<Call> stated_calls(const OpDef& op) {
  std::vector<Call> calls;
  if (has_functions(op)) return calls;
  for (const Sample& s : op.samples) {
    Call call{.op = &op, .in = {}, .attrs = attributes(op, s.attrs.get())};
    for (const Tensor& t : s.make ? s.make() : s.in) {
      if (!t.defined()) call.broken = "an input that refers to nothing";
      if (call.broken.empty()) call.in.push_back(given(t, call.broken));
    }
    calls.push_back(std::move(call));
  }
  if (!calls.empty()) return calls;
  for (const TableKind kind : kTableKinds) {
    if (kind != TableKind::scalars && !is_on_table(op)) continue;
    if (auto call = call_on_state(op, kind)) calls.push_back(*call);
  }
  return calls;
}

json to_json(const Call& call, How how) {
  json attrs = json::object();
  for (const auto& [name, value] : call.attrs) attrs[name] = attr_value_to_json(value);
  json inputs = json::array();
  const bool fits = call.op->fits_input_count(static_cast<int>(call.in.size()));
  static const ArgSpec unnamed{.name = "?"};
  const ArgSpec* last = nullptr;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const ArgSpec* arg = fits ? &call.spec(i) : &unnamed;
    if (arg != last) inputs.push_back({arg->name, json::array()});
    last = arg;
    inputs.back()[1].push_back(given_to_json(call.in[i]));
  }
  json j = {{"op", call.op->name}, {"attrs", attrs}, {"inputs", inputs}};
  if (how != How::eager) j["how"] = how == How::ranks ? "in a graph that knows ranks" : "in a graph";
  return j;
}

}  // namespace runnel::interop
