// Graphs as TensorFlow's GraphDef: writing.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <runnel_pb/graph.pb.h>

#include <cctype>
#include <map>
#include <set>

#include "runnel/base/format.h"
#include "runnel/graph/decompose.h"
#include "runnel/graph/graph.h"
#include "runnel/graph/graph_function.h"
#include "runnel/op/attr_proto.h"
#include "runnel/tensor/tensor_proto.h"

namespace runnel {
namespace {

constexpr int kProducer = 1087;  // the version of TensorFlow's graphs whose ops these are

class Exporter {
 public:
  // `shown`: to be looked at and not to be run.
  explicit Exporter(bool shown) : shown_(shown) {}

  pb::GraphDef graph_def(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (node->is("_Arg")) {
        pb::NodeDef& def = *def_.add_node();
        write_placeholder(*node, def);
        if (shown_) write_shapes(*node, def);
      } else {
        write_node(*node, *def_.add_node(), graph_input);
      }
    }
    std::set<std::string> names;
    for (const auto& node : graph.nodes()) names.insert(node->name);
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const NodeOutput& from = graph.outputs()[i];
      pb::NodeDef& to = *def_.add_node();
      to.set_name(free_name(i == 0 ? "Identity" : fmt::format("Identity_{}", i), names));
      to.set_op("Identity");
      to.add_input(graph_input(from));
      (*to.mutable_attr())["T"].set_type(dtype_to_proto(from.node->dtype(from.index)));
      (*to.mutable_attr())["_runnel_output"].set_i(static_cast<int64_t>(i));
    }
    write_library();
    def_.mutable_versions()->set_producer(kProducer);
    return std::move(def_);
  }

 private:
  using InputName = std::string (*)(const NodeOutput&);

  static std::string free_name(const std::string& wish, std::set<std::string>& taken) {
    std::string name = wish;
    for (int k = 1; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", wish, k);
    return name;
  }

  static std::string graph_input(const NodeOutput& v) {
    return v.index == 0 ? v.node->name : fmt::format("{}:{}", v.node->name, v.index);
  }

  // "node:output_arg:index", the index counted within that argument of the op.
  static std::string body_input(const NodeOutput& v) {
    int at = v.index;
    for (const ArgSpec& arg : v.node->op->outputs) {
      const int n = output_count(*v.node, arg);
      if (at < n) return fmt::format("{}:{}:{}", v.node->name, arg.name, at);
      at -= n;
    }
    throw make_error(Code::internal, "node '{}' has no output {}", v.node->name, v.index);
  }

  static int output_count(const Node& node, const ArgSpec& arg) {
    if (!arg.is_list()) return 1;
    if (!arg.count.empty()) {
      return static_cast<int>(std::get<int64_t>(node.op->attrs.find(arg.count)->get(node.attrs.get())));
    }
    return static_cast<int>(
        std::get<std::vector<DType>>(node.op->attrs.find(arg.type_list_attr)->get(node.attrs.get())).size());
  }

  static void write_placeholder(const Node& node, pb::NodeDef& to) {
    to.set_name(node.name);
    to.set_op("Placeholder");
    (*to.mutable_attr())["dtype"].set_type(dtype_to_proto(node.dtype()));
    shape_to_proto(node.shape(), *(*to.mutable_attr())["shape"].mutable_shape());
    (*to.mutable_attr())["_runnel_input"].set_i(node.attrs_as<ArgAttrs>().index);
  }

  void write_node(const Node& node, pb::NodeDef& to, InputName input_name) {
    if (node.op->name.starts_with('_') && !shown_) {
      throw make_error(Code::unimplemented, "[to_graph_def] node '{}': TensorFlow has no op '{}'", node.name,
                       node.op->name);
    }
    to.set_name(node.name);
    to.set_op(node.op->name);
    for (const NodeOutput& in : node.inputs) to.add_input(input_name(in));
    for (const Node* in : node.control_inputs) to.add_input("^" + in->name);
    write_types(node, to);
    for (const AttrSpec& spec : node.op->attrs.specs) {
      const AttrValue value = spec.get(node.attrs.get());
      pb::AttrValue& attr = (*to.mutable_attr())[spec.name];
      if (const auto* f = std::get_if<FuncAttr>(&value)) {
        attr.mutable_func()->set_name(function_name(*f, node));
      } else if (const auto* list = std::get_if<std::vector<FuncAttr>>(&value)) {
        attr.mutable_list();
        for (const FuncAttr& each : *list) attr.mutable_list()->add_func()->set_name(function_name(each, node));
      } else if (const auto* tensor = std::get_if<Tensor>(&value); tensor && !tensor->defined()) {
        to.mutable_attr()->erase(spec.name);
      } else {
        attr_to_proto(value, attr);
      }
    }
    if (shown_) write_shapes(node, to);
  }

  static void write_shapes(const Node& node, pb::NodeDef& to) {
    attr_to_proto(node.shapes, (*to.mutable_attr())["_output_shapes"]);
  }

  // What the inputs say: their type variables, the lengths of lists and the dtypes of mixed lists.
  static void write_types(const Node& node, pb::NodeDef& to) {
    const OpDef& op = *node.op;
    auto& attrs = *to.mutable_attr();
    const int total = static_cast<int>(node.inputs.size());
    std::map<const ArgSpec*, std::vector<DType>> by_arg;
    for (int i = 0; i < total; ++i) {
      const NodeOutput& in = node.inputs[static_cast<size_t>(i)];
      by_arg[&op.input_spec(i, total)].push_back(in.node->dtype(in.index));
    }
    for (const ArgSpec& arg : op.inputs) {
      const std::vector<DType>& dtypes = by_arg[&arg];
      if (arg.type_var >= 0 && !dtypes.empty()) {
        attrs[op.type_vars[static_cast<size_t>(arg.type_var)].name].set_type(dtype_to_proto(dtypes[0]));
      }
      if (!arg.count.empty()) attrs[arg.count].set_i(static_cast<int64_t>(dtypes.size()));
      if (!arg.type_list_attr.empty()) attr_to_proto(dtypes, attrs[arg.type_list_attr]);
    }
  }

  std::string function_name(const FuncAttr& f, const Node& user) {
    const GraphFunction* body = graph_function(f);
    if (!body && shown_) return f.name;
    if (!body) {
      throw make_error(Code::failed_precondition, "[to_graph_def] node '{}': the function '{}' has no graph", user.name,
                       f.name);
    }
    auto [it, fresh] = names_of_.try_emplace(body);
    if (fresh) {
      it->second = free_name(f.name, function_names_);
      pending_.push_back(body);
    }
    return it->second;
  }

  void write_library() {
    // NOLINTNEXTLINE(modernize-loop-convert): it grows, functions call functions
    for (size_t i = 0; i < pending_.size(); ++i) {
      write_function(*pending_[i], *def_.mutable_library()->add_function());
    }
  }

  // Names of arguments are lower case in TensorFlow.
  static std::string arg_name(const std::string& node_name, std::set<std::string>& taken) {
    std::string name;
    for (char c : node_name) {
      const auto u = static_cast<unsigned char>(c);
      name += std::isalnum(u) ? static_cast<char>(std::tolower(u)) : '_';
    }
    if (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0) name = "arg" + name;
    return free_name(name, taken);
  }

  void write_function(const GraphFunction& function, pb::FunctionDef& to) {
    const Graph& graph = function.graph();
    pb::OpDef& signature = *to.mutable_signature();
    signature.set_name(names_of_[&function]);
    std::set<std::string> taken;
    for (const auto& node : graph.nodes()) {
      if (!node->is("_Arg")) taken.insert(node->name);
    }
    arg_names_.clear();
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Node& arg = *graph.inputs()[i];
      auto& spec = *signature.add_input_arg();
      spec.set_name(arg_name(arg.name, taken));
      spec.set_type(dtype_to_proto(arg.dtype()));
      arg_names_[&arg] = spec.name();
      auto& attr = (*(*to.mutable_arg_attr())[static_cast<uint32_t>(i)].mutable_attr())["_output_shapes"];
      shape_to_proto(arg.shape(), *attr.mutable_list()->add_shape());
    }
    for (const auto& node : graph.nodes()) {
      if (node->is("_Arg")) continue;
      pb::NodeDef& def = *to.add_node_def();
      write_node(*node, def, body_input);
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        if (auto it = arg_names_.find(node->inputs[i].node); it != arg_names_.end()) {
          def.set_input(static_cast<int>(i), it->second);
        }
      }
      if (has_side_effect(*node)) {
        signature.set_is_stateful(true);
        signature.add_control_output(node->name);
        (*to.mutable_control_ret())[node->name] = node->name;
      }
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const NodeOutput& from = graph.outputs()[i];
      auto& spec = *signature.add_output_arg();
      spec.set_name(free_name(fmt::format("output_{}", i), taken));
      spec.set_type(dtype_to_proto(from.node->dtype(from.index)));
      auto it = arg_names_.find(from.node);
      (*to.mutable_ret())[spec.name()] = it != arg_names_.end() ? it->second : body_input(from);
    }
  }

  const bool shown_;
  pb::GraphDef def_;
  std::map<const GraphFunction*, std::string> names_of_;
  std::set<std::string> function_names_;
  std::vector<const GraphFunction*> pending_;
  std::map<const Node*, std::string> arg_names_;  // of the function being written
};

std::string serialized_graph(const pb::GraphDef& def) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);  // maps in the order of their keys
  def.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

}  // namespace

std::string Graph::to_graph_def() const { return serialized_graph(Exporter(false).graph_def(*decomposed(*this))); }

std::string Graph::to_shown_graph_def(bool as_it_runs) const {
  return serialized_graph(Exporter(true).graph_def(as_it_runs ? *this : *decomposed(*this)));
}

}  // namespace runnel
