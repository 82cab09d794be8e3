// What every declaration must say.
#include <memory>
#include <set>
#include <string>

#include "tests/suite/suite.h"

namespace runnel::test {

// Calls of functions, parameters of graphs, and what only writes for people: their tests are those of functions.
static bool is_part_of_a_graph(const OpDef& op) {
  for (const AttrSpec& attr : op.attrs.specs) {
    if (std::holds_alternative<FuncAttr>(attr.default_value)) return true;
    if (std::holds_alternative<std::vector<FuncAttr>>(attr.default_value)) return true;
  }
  return op.name == "_Arg" || op.name == "Placeholder" || op.name == "NoOp" || op.name == "PrintV2";
}

void check_declaration(const OpDef& op) {
  EXPECT_FALSE(op.doc.empty()) << op.name << " has no doc";
  EXPECT_TRUE(op.doc.ends_with('.') || op.doc.ends_with('?')) << "the doc of " << op.name << " stops short: " << op.doc;
  ASSERT_NE(op.infer, nullptr) << op.name << " has no shape function";
  std::set<std::string> names;
  for (const auto* list : {&op.inputs, &op.outputs}) {
    for (const ArgSpec& arg : *list) {
      EXPECT_FALSE(arg.name.empty()) << op.name << " has an input or output without a name";
      EXPECT_TRUE(arg.type_var >= 0 || arg.dtype != DType::invalid || !arg.type_attr.empty() ||
                  !arg.type_list_attr.empty())
          << op.name << ": " << arg.name << " has no dtype";
    }
  }
  for (const ArgSpec& arg : op.inputs) EXPECT_TRUE(names.insert(arg.name).second) << op.name << ": " << arg.name;
  const std::shared_ptr<void> defaults = op.attrs.make ? op.attrs.make() : nullptr;
  for (const AttrSpec& attr : op.attrs.specs) {
    const std::string type = attr_type_name(attr.default_value);
    EXPECT_TRUE(attr.texts.empty() || type.ends_with("string") || type.ends_with("string)"))
        << op.name << "." << attr.name;
    EXPECT_TRUE(attr.types == 0 || type == "type" || type == "list(type)") << op.name << "." << attr.name;
    EXPECT_TRUE(attr.minimum == AttrRule::kNoMinimum || type == "int" || type.starts_with("list("))
        << op.name << "." << attr.name;
    if (attr.has_default()) {
      EXPECT_NO_THROW(attr.check(defaults.get())) << op.name << "." << attr.name;
    }
    EXPECT_FALSE(attr.name.empty());
    EXPECT_TRUE(names.insert(attr.name).second) << op.name << " has two things called " << attr.name;
  }
  bool stated = false;
  for (const Sample& s : op.samples) stated = stated || s.error.empty();
  EXPECT_TRUE(stated || has_handles(op) || is_part_of_a_graph(op)) << op.name << " has no sample";
}

void check_kernels(const OpDef& op) {
  if (op.type_vars.empty()) {
    EXPECT_NE(op.kernel(kCpu, DType::invalid), nullptr) << op.name << " has no kernel";
    return;
  }
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!op.type_vars[0].allows(dtype)) continue;
    EXPECT_NE(op.kernel(kCpu, dtype), nullptr)
        << op.name << " allows " << op.type_vars[0].name << " = " << dtype_name(dtype) << ", but has no kernel for it";
  }
}

void check_derivative(const OpDef& op) {
  bool from = false;
  bool to = false;
  for (const ArgSpec& a : op.inputs) from = from || (!a.host_memory && may_be_float(op, a));
  for (const ArgSpec& a : op.outputs) to = to || may_be_float(op, a);
  if (from && to) {
    EXPECT_TRUE(op.grad || op.not_differentiable)
        << op.name << " takes and gives floats: it needs .grad or .not_differentiable()";
  }
  EXPECT_FALSE(op.grad && op.not_differentiable) << op.name;
  if (op.grad && from && to && !op.stateful) {
    bool checked = false;
    for (const Sample& s : op.samples) checked = checked || (s.error.empty() && s.differentiable);
    EXPECT_TRUE(checked) << op.name << " has a gradient, but no sample at which it can be checked";
  }
}

TEST(Aliases, LeadToOps) {
  EXPECT_FALSE(registry().aliases().empty());
  for (const auto& [older, name] : registry().aliases()) {
    const OpDef* op = registry().find(older);
    ASSERT_NE(op, nullptr) << older << " leads to " << name << ", which is no op";
    EXPECT_EQ(op, registry().find(name)) << older;
    EXPECT_NE(op->name, older) << older << " is an op and an alias";
  }
}

}  // namespace runnel::test
