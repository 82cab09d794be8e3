// Graphs as TensorFlow's GraphDef: reading.
#include <google/protobuf/stubs/logging.h>
#include <runnel_pb/graph.pb.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/graph/graph_def.h"
#include "runnel/graph/graph_function.h"
#include "runnel/graph/ref_variables.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/attr_proto.h"
#include "runnel/op/registry.h"
#include "runnel/ops/lookup_table.h"
#include "runnel/ops/named_resources.h"
#include "runnel/tensor/tensor_proto.h"

namespace runnel {
namespace {

using google::protobuf::RepeatedPtrField;

// "name", "name:1", "name:output_arg:0" or "^name", taken apart.
struct InputName {
  std::string node;
  std::string arg;  // of function bodies
  int index = 0;
  bool control = false;
};

InputName parse_input(const std::string& text, const std::string& user) {
  InputName name;
  if (text.starts_with('^')) {
    name.control = true;
    name.node = text.substr(1);
    return name;
  }
  const size_t first = text.find(':');
  name.node = text.substr(0, first);
  if (first == std::string::npos) return name;
  std::string_view rest = std::string_view(text).substr(first + 1);
  if (const size_t second = rest.find(':'); second != std::string_view::npos) {
    name.arg = rest.substr(0, second);
    rest.remove_prefix(second + 1);
  }
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), name.index);
  if (read.ec != std::errc() || read.ptr != rest.data() + rest.size() || name.index < 0) {
    throw invalid_argument("[from_graph_def] '{}' names its input '{}', which is no name of a tensor", user, text);
  }
  return name;
}

class Library;

// Nodes of a graph or of a function's body become nodes of ours, in an order in which each comes after its inputs.
class Importer {
 public:
  Importer(Library& library, std::string name, const RepeatedPtrField<pb::NodeDef>& nodes, bool body)
      : library_(library), tracer_(std::move(name)), body_(body) {
    for (const pb::NodeDef& def : nodes) {
      if (!defs_.emplace(def.name(), &def).second) {
        throw invalid_argument("[from_graph_def] two nodes are called '{}'", def.name());
      }
    }
  }

  Tensor add_parameter(const std::string& name, DType dtype, const PartialShape& shape) {
    Tensor t = tracer_.add_parameter(dtype, shape, name);
    rename(*node_symbol(t)->output().node, name);
    made_[name] = Made{node_symbol(t)->output().node, {t}};
    return t;
  }

  // The tensor stands for output `index` of a node whose own computation is left out.
  void replace(const std::string& text, Tensor by) { replaced_[text] = std::move(by); }

  Tensor tensor(const std::string& text, const std::string& user) {
    const InputName name = parse_input(text, user);
    if (auto it = replaced_.find(fmt::format("{}:{}", name.node, name.index)); it != replaced_.end()) return it->second;
    const Made& made = node(name.node, user);
    size_t at = static_cast<size_t>(name.index);
    if (body_ && !name.arg.empty()) at += first_output(made, name, user);
    if (at >= made.outputs.size()) {
      throw invalid_argument("[from_graph_def] '{}' wants '{}', but that node has {} outputs", user, text,
                             made.outputs.size());
    }
    return made.outputs[at];
  }

  struct Made {
    Node* node = nullptr;
    std::vector<Tensor> outputs;
  };
  // Makes the node and what it needs, unless that was done before.
  const Made& node(const std::string& name, const std::string& user);

  std::shared_ptr<Graph> finish(const std::vector<Tensor>& outputs) {
    for (const auto& [node, name] : names_) node->name = name;
    for (const auto& [node, name] : names_) graph().unique_name(name);  // taken from now on
    tracer_.set_outputs(outputs);
    graph().sort();
    graph().resources = space();
    return tracer_.graph();
  }

  Graph& graph() { return *tracer_.graph(); }
  const std::map<std::string, const pb::NodeDef*>& defs() const { return defs_; }
  bool is_made(const std::string& name) const { return made_.contains(name); }

 private:
  const std::shared_ptr<const ResourceSpace>& space() const;
  void rename(Node& node, const std::string& name) { names_.emplace_back(&node, name); }
  std::vector<std::string> missing_inputs(const pb::NodeDef& def) const;
  void make(const pb::NodeDef& def);
  SharedAttrs attrs_of(const OpDef& op, const pb::NodeDef& def);

  static size_t first_output(const Made& made, const InputName& name, const std::string& user) {
    size_t at = 0;
    for (const ArgSpec& arg : made.node->op->outputs) {
      if (arg.name == name.arg) return at;
      if (!arg.is_list()) {
        ++at;
      } else if (!arg.count.empty()) {
        at += static_cast<size_t>(std::get<int64_t>(made.node->op->attrs.find(arg.count)->get(made.node->attrs.get())));
      } else {
        at += std::get<std::vector<DType>>(made.node->op->attrs.find(arg.type_list_attr)->get(made.node->attrs.get()))
                  .size();
      }
    }
    throw invalid_argument("[from_graph_def] '{}' wants output '{}' of '{}', which {} has not", user, name.arg,
                           name.node, made.node->op->name);
  }

  Library& library_;
  Tracer tracer_;
  bool body_;
  std::map<std::string, const pb::NodeDef*> defs_;
  std::map<std::string, Made> made_;
  std::map<std::string, Tensor> replaced_;
  std::vector<std::pair<Node*, std::string>> names_;
};

// The functions of a GraphDef, made when a node refers to them.
class Library {
 public:
  Library(const pb::FunctionDefLibrary& library, const Graph* state_of)
      : space_(state_of ? state_of->resources : std::make_shared<const ResourceSpace>()) {
    for (const pb::FunctionDef& f : library.function()) defs_[f.signature().name()] = &f;
  }

  FuncAttr function(const pb::NameAttrList& reference) {
    const std::string& name = reference.name();
    if (auto it = made_.find(name); it != made_.end()) return func_attr(it->second);
    if (auto it = open_.find(name); it != open_.end()) return {name, it->second};  // it calls itself
    auto made = std::make_shared<GraphFunction>(graph(name));
    made_[name] = made;
    if (auto self = open_.extract(name)) self.mapped()->target = made;
    return func_attr(made);
  }

  std::shared_ptr<Graph> graph(const std::string& name) {
    const auto it = defs_.find(name);
    if (it == defs_.end()) throw make_error(Code::not_found, "[from_graph_def] there is no function '{}'", name);
    const pb::FunctionDef& def = *it->second;
    open_[name] = std::make_shared<RecursiveFunction>();
    Importer body(*this, name, def.node_def(), true);
    for (int i = 0; i < def.signature().input_arg_size(); ++i) {
      const auto& arg = def.signature().input_arg(i);
      if (!arg.type_attr().empty() || !arg.number_attr().empty() || !arg.type_list_attr().empty()) {
        throw make_error(
            Code::unimplemented,
            "[from_graph_def] function '{}': argument '{}' has no fixed type, as attributes of the call give it; "
            "export the graph with a concrete function, whose arguments have types",
            name, arg.name());
      }
      body.add_parameter(arg.name(), dtype_from_proto(arg.type()), arg_shape(def, i));
    }
    for (const auto& [name_of, node] : def.control_ret()) body.node(node, name);
    std::vector<Tensor> outputs;
    for (const auto& arg : def.signature().output_arg()) {
      const auto ret = def.ret().find(arg.name());
      if (ret == def.ret().end()) {
        throw invalid_argument("[from_graph_def] function '{}' does not say what it returns as '{}'", name, arg.name());
      }
      outputs.push_back(body.tensor(ret->second, name));
    }
    return body.finish(outputs);
  }

  // Where all that the graphs name is found.
  const std::shared_ptr<const ResourceSpace>& space() const { return space_; }

 private:
  static PartialShape arg_shape(const pb::FunctionDef& def, int i) {
    const auto attrs = def.arg_attr().find(static_cast<uint32_t>(i));
    if (attrs == def.arg_attr().end()) return PartialShape::unknown();
    const auto shapes = attrs->second.attr().find("_output_shapes");
    if (shapes == attrs->second.attr().end() || shapes->second.list().shape_size() != 1) return PartialShape::unknown();
    return shape_from_proto(shapes->second.list().shape(0));
  }

  std::map<std::string, const pb::FunctionDef*> defs_;
  std::map<std::string, std::shared_ptr<GraphFunction>> made_;
  std::map<std::string, std::shared_ptr<RecursiveFunction>> open_;
  std::shared_ptr<const ResourceSpace> space_;
};

const std::shared_ptr<const ResourceSpace>& Importer::space() const { return library_.space(); }

std::vector<std::string> Importer::missing_inputs(const pb::NodeDef& def) const {
  std::vector<std::string> missing;
  for (const std::string& text : def.input()) {
    const InputName name = parse_input(text, def.name());
    if (!name.control && replaced_.contains(fmt::format("{}:{}", name.node, name.index))) continue;
    if (!made_.contains(name.node)) missing.push_back(name.node);
  }
  return missing;
}

const Importer::Made& Importer::node(const std::string& name, const std::string& user) {
  std::vector<std::pair<std::string, std::string>> stack{{name, user}};  // a node and who wants it
  std::set<std::string> open;
  while (!stack.empty()) {
    const auto [wanted, by] = stack.back();
    if (made_.contains(wanted)) {
      stack.pop_back();
      continue;
    }
    const auto it = defs_.find(wanted);
    if (it == defs_.end()) {
      throw invalid_argument("[from_graph_def] '{}' wants '{}', but there is no such node", by, wanted);
    }
    const std::vector<std::string> missing = missing_inputs(*it->second);
    if (missing.empty()) {
      make(*it->second);
      stack.pop_back();
      continue;
    }
    if (!open.insert(wanted).second) {
      throw make_error(
          Code::unimplemented,
          "[from_graph_def] a cycle through '{}': loops of TensorFlow 1 cannot be read, export the graph with "
          "functional control flow",
          wanted);
    }
    for (const std::string& each : missing) stack.emplace_back(each, wanted);
  }
  return made_.at(name);
}

// What TensorFlow may leave out of branches and loops: the shapes of their results, and how many inputs of a loop
// change (all, as far as it says).
void complete_control_flow(const OpDef& op, const pb::NodeDef& def, void* values) {
  if (const AttrSpec* shapes = op.attrs.find("output_shapes")) {
    const auto n = static_cast<size_t>(op.num_outputs(values));
    if (std::get<std::vector<PartialShape>>(shapes->get(values)).size() != n) {
      shapes->set(values, std::vector<PartialShape>(n, PartialShape::unknown()));
    }
  }
  if (const AttrSpec* state = op.attrs.find("_num_state")) {
    const auto n = static_cast<int64_t>(op.num_outputs(values));
    const int64_t given = std::get<int64_t>(state->get(values));
    if (given < 0 || given > n) {
      throw invalid_argument("[from_graph_def] node '{}' has {} state tensors of {}", def.name(), given, n);
    }
    if (!def.attr().contains(state->name)) state->set(values, n);
  }
}

// Where the node finds the variable, table or writer that it names.
void give_home(const OpDef& op, const ResourceHome& home, void* attrs) {
  constexpr const char* kTables[] = {"HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2",
                                     "MutableDenseHashTableV2"};
  if (op.name == "VarHandleOp") static_cast<VariableHandleAttrs*>(attrs)->home = home;
  if (op.name == "SummaryWriter") static_cast<SummaryWriterAttrs*>(attrs)->home = home;
  const bool is_table = std::ranges::any_of(kTables, [&](const char* table) { return op.name == table; });
  if (is_table) static_cast<TableAttrs*>(attrs)->home = home;
}

SharedAttrs Importer::attrs_of(const OpDef& op, const pb::NodeDef& def) {
  if (!op.attrs.make) return nullptr;
  std::shared_ptr<void> values = op.attrs.make();
  for (const AttrSpec& spec : op.attrs.specs) {
    const auto it = def.attr().find(spec.name);
    if (it == def.attr().end()) {
      if (spec.has_default()) continue;
      throw invalid_argument("[from_graph_def] node '{}' ({}) says nothing of attribute '{}'", def.name(), op.name,
                             spec.name);
    }
    const pb::AttrValue& value = it->second;
    try {
      if (std::holds_alternative<FuncAttr>(spec.default_value)) {
        if (!value.has_func()) throw invalid_argument("a function is needed");
        spec.set(values.get(), library_.function(value.func()));
      } else if (std::holds_alternative<std::vector<FuncAttr>>(spec.default_value)) {
        std::vector<FuncAttr> list;
        for (const auto& f : value.list().func()) list.push_back(library_.function(f));
        spec.set(values.get(), list);
      } else {
        spec.set(values.get(), attr_from_proto(value, spec.default_value));
      }
    } catch (const Error& e) {
      throw make_error(e.code(), "[from_graph_def] node '{}' ({}), attribute '{}': {}", def.name(), op.name, spec.name,
                       e.what());
    }
  }
  complete_control_flow(op, def, values.get());
  give_home(op, {space(), body_ ? graph().name() + "/" + def.name() : def.name()}, values.get());
  return values;
}

void Importer::make(const pb::NodeDef& def) {
  const OpDef* op = registry().find(def.op());
  if (!op) throw make_error(Code::not_found, "[from_graph_def] node '{}': there is no op '{}'", def.name(), def.op());
  std::vector<Tensor> inputs;
  std::vector<Node*> control;
  for (const std::string& text : def.input()) {
    const InputName name = parse_input(text, def.name());
    if (name.control) {
      control.push_back(made_.at(name.node).node);
    } else {
      inputs.push_back(tensor(text, def.name()));
    }
  }
  const SharedAttrs attrs = attrs_of(*op, def);
  Made made;
  if (op->name == "Const") {
    const auto& [dtype, value] = *static_cast<const ConstAttrs*>(attrs.get());
    if (!value.defined() || value.dtype() != dtype) {
      throw invalid_argument("[from_graph_def] the constant '{}' has no value of its dtype, {}", def.name(),
                             dtype_name(dtype));
    }
    made.node = graph().add_constant(value, {});
    made.outputs = {symbolic(tracer_.graph(), {made.node, 0})};
  } else {
    made.outputs.resize(static_cast<size_t>(op->num_outputs(attrs.get())));
    std::vector<const Tensor*> in;
    for (const Tensor& t : inputs) in.push_back(&t);
    tracer_.open();
    try {
      dispatch(*op, in, attrs.get(), made.outputs.data(), static_cast<int>(made.outputs.size()), {});
    } catch (const Error& e) {
      tracer_.close();
      throw make_error(e.code(), "[from_graph_def] node '{}': {}", def.name(), e.what());
    }
    tracer_.close();
    made.node = graph().nodes().back().get();
  }
  made.node->control_inputs = std::move(control);  // what the file says, not the order it was read in
  rename(*made.node, def.name());
  made_[def.name()] = std::move(made);
}

pb::GraphDef parse(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // the Error says it
  pb::GraphDef def;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw make_error(Code::data_loss, "[from_graph_def] {} bytes that are no GraphDef", bytes.size());
  }
  return def;
}

std::optional<int64_t> marked(const pb::NodeDef& def, const char* mark) {
  const auto it = def.attr().find(mark);
  return it == def.attr().end() ? std::nullopt : std::optional(it->second.i());
}

// The nodes that to_graph_def marked, by their numbers.
std::vector<const pb::NodeDef*> marked_nodes(const pb::GraphDef& def, const char* mark) {
  std::map<int64_t, const pb::NodeDef*> by_number;
  for (const pb::NodeDef& node : def.node()) {
    if (auto i = marked(node, mark)) by_number[*i] = &node;
  }
  std::vector<const pb::NodeDef*> all;
  for (const auto& [i, node] : by_number) all.push_back(node);
  return all;
}

void add_placeholder(Importer& importer, const pb::NodeDef& def) {
  const auto dtype = def.attr().find("dtype");
  const auto shape = def.attr().find("shape");
  if (dtype == def.attr().end()) throw invalid_argument("[from_graph_def] placeholder '{}' has no dtype", def.name());
  importer.add_parameter(def.name(), dtype_from_proto(dtype->second.type()),
                         shape == def.attr().end() ? PartialShape::unknown() : shape_from_proto(shape->second.shape()));
}

void add_parameters(Importer& importer, Importer& whole, const pb::GraphDef& def, const GraphDefImport& options) {
  if (options.inputs.empty()) {
    std::vector<const pb::NodeDef*> placeholders = marked_nodes(def, "_runnel_input");
    for (const pb::NodeDef& node : def.node()) {
      if (node.op() == "Placeholder" && !marked(node, "_runnel_input")) placeholders.push_back(&node);
    }
    for (const pb::NodeDef* node : placeholders) add_placeholder(importer, *node);
    return;
  }
  for (const std::string& text : options.inputs) {
    const InputName name = parse_input(text, "inputs");
    const auto it = importer.defs().find(name.node);
    if (it == importer.defs().end()) throw invalid_argument("[from_graph_def] there is no node '{}'", name.node);
    if (it->second->op() == "Placeholder") {
      add_placeholder(importer, *it->second);
      continue;
    }
    // Its dtype and shape are known once it was computed, which is what is to be left out: elsewhere.
    const Tensor full = whole.tensor(text, "inputs");
    const std::string parameter = fmt::format("{}_{}", name.node, name.index);
    importer.replace(fmt::format("{}:{}", name.node, name.index),
                     importer.add_parameter(parameter, full.dtype(), full.partial_shape()));
  }
}

std::vector<std::string> unused_tensors(const pb::GraphDef& def, Importer& importer) {
  std::set<std::string> used;
  for (const pb::NodeDef& node : def.node()) {
    for (const std::string& text : node.input()) used.insert(parse_input(text, node.name()).node);
  }
  std::vector<std::string> all;
  for (const pb::NodeDef& node : def.node()) {
    if (used.contains(node.name()) || node.op() == "Placeholder") continue;
    const size_t n = importer.node(node.name(), "the graph").outputs.size();
    for (size_t i = 0; i < n; ++i) all.push_back(fmt::format("{}:{}", node.name(), i));
  }
  return all;
}

}  // namespace

std::shared_ptr<Graph> from_graph_def(std::string_view bytes, const GraphDefImport& options, SourceSite where) {
  return at_caller(where, [&]() -> std::shared_ptr<Graph> {
    pb::GraphDef def = parse(bytes);
    use_resource_variables(def);
    if (options.state_of && !options.state_of->resources) {
      throw invalid_argument("[from_graph_def] `state_of` is '{}', which was not read from a GraphDef",
                             options.state_of->name());
    }
    Library library(def.library(), options.state_of.get());
    if (!options.function.empty()) return library.graph(options.function);
    Importer importer(library, "imported", def.node(), false);
    Importer whole(library, "imported", def.node(), false);
    add_parameters(importer, whole, def, options);
    std::vector<std::string> names = options.outputs;
    const std::vector<const pb::NodeDef*> results = marked_nodes(def, "_runnel_output");
    if (names.empty() && options.targets.empty()) {
      for (const pb::NodeDef* node : results) {
        if (node->input_size() == 0)
          throw invalid_argument("[from_graph_def] '{}' is marked as a result, but has no input", node->name());
        names.push_back(node->input(0));
      }
      if (results.empty()) names = unused_tensors(def, importer);
      // Everything that has effects runs, as it did in the graph that was written.
      for (const pb::NodeDef& node : def.node()) {
        const bool result = marked(node, "_runnel_output").has_value();
        if (!result && node.op() != "Placeholder") importer.node(node.name(), "the graph");
      }
    }
    std::vector<Tensor> outputs;
    for (const std::string& text : names) outputs.push_back(importer.tensor(text, "outputs"));
    for (const std::string& text : options.targets) importer.node(text, "targets");
    return importer.finish(outputs);
  });
}

std::vector<std::string> graph_def_functions(std::string_view bytes, SourceSite where) {
  return at_caller(where, [&] {
    const pb::GraphDef def = parse(bytes);
    std::vector<std::string> names;
    for (const auto& f : def.library().function()) names.push_back(f.signature().name());
    return names;
  });
}

}  // namespace runnel
