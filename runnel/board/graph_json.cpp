#include "runnel/board/graph_json.h"

#include <runnel_pb/graph.pb.h>

#include "runnel/base/format.h"
#include "runnel/io/wire.h"
#include "runnel/tensor/dtype.h"

namespace runnel::board {
namespace {

using io::wire::Cursor;
using io::wire::tag;

constexpr int kMostNodes = 200'000;
constexpr size_t kLongestAttr = 200;
constexpr int kMostOfList = 10;

std::string dtype_text(int number) {
  const bool ref = number > 100;  // TensorFlow 1's references
  try {
    return std::string(dtype_name(static_cast<DType>(ref ? number - 100 : number))) + (ref ? "_ref" : "");
  } catch (const Error&) {
    return fmt::format("dtype {}", number);
  }
}

std::string shape_text(const pb::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "?";
  std::string text;
  for (const auto& dim : shape.dim()) {
    text += (text.empty() ? "" : ",") + (dim.size() < 0 ? std::string("?") : std::to_string(dim.size()));
  }
  return "[" + text + "]";
}

std::string attr_text(const pb::AttrValue& attr);

template <class List, class Text>
std::string list_text(const List& list, Text text) {
  std::string all;
  int number = 0;
  for (const auto& one : list) {
    if (number++ == kMostOfList) {
      all += fmt::format(", ... ({} in all)", list.size());
      break;
    }
    all += (all.empty() ? "" : ", ") + text(one);
  }
  return all;
}

std::string attr_list_text(const pb::AttrValue::ListValue& list) {
  const auto number = [](auto v) { return fmt::format("{}", v); };
  const auto same = [](const std::string& s) { return s; };
  std::string text;
  if (list.s_size() > 0) text = list_text(list.s(), same);
  if (list.i_size() > 0) text = list_text(list.i(), number);
  if (list.f_size() > 0) text = list_text(list.f(), number);
  if (list.b_size() > 0) text = list_text(list.b(), number);
  if (list.type_size() > 0) text = list_text(list.type(), [](int v) { return dtype_text(v); });
  if (list.shape_size() > 0) text = list_text(list.shape(), shape_text);
  if (list.func_size() > 0) text = list_text(list.func(), [](const pb::NameAttrList& f) { return f.name(); });
  return "[" + text + "]";
}

std::string attr_text(const pb::AttrValue& attr) {
  switch (attr.value_case()) {
    case pb::AttrValue::kS: return attr.s();
    case pb::AttrValue::kI: return std::to_string(attr.i());
    case pb::AttrValue::kF: return fmt::format("{}", attr.f());
    case pb::AttrValue::kB: return attr.b() ? "true" : "false";
    case pb::AttrValue::kType: return dtype_text(attr.type());
    case pb::AttrValue::kShape: return shape_text(attr.shape());
    case pb::AttrValue::kTensor:
      return dtype_text(attr.tensor().dtype()) + " " + shape_text(attr.tensor().tensor_shape());
    case pb::AttrValue::kFunc: return attr.func().name();
    case pb::AttrValue::kPlaceholder: return "$" + attr.placeholder();
    case pb::AttrValue::kList: return attr_list_text(attr.list());
    case pb::AttrValue::VALUE_NOT_SET: break;
  }
  return "";
}

Json node_json(const pb::NodeDef& node, const std::string& scope) {
  Json inputs = Json::array();
  for (const std::string& input : node.input()) {
    inputs.push_back(input.starts_with('^') ? "^" + scope + input.substr(1) : scope + input);
  }
  std::map<std::string, std::string> attrs;  // sorted
  for (const auto& [name, attr] : node.attr()) {
    const std::string text = attr_text(attr);
    attrs[name] = text.size() > kLongestAttr ? text.substr(0, kLongestAttr) + "..." : text;
  }
  return {{"name", scope + node.name()},
          {"op", node.op()},
          {"inputs", inputs},
          {"device", node.device()},
          {"attrs", attrs}};
}

template <class Nodes>
void append_nodes(Json& json, const Nodes& nodes, const std::string& scope) {
  for (const pb::NodeDef& node : nodes) json.push_back(node_json(node, scope));
}

pb::GraphDef parse_graph(std::string_view bytes) {
  pb::GraphDef graph;
  if (bytes.size() > INT32_MAX || !graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw make_error(Code::data_loss, "the graph is damaged");
  }
  int nodes = graph.node_size();
  for (const pb::FunctionDef& function : graph.library().function()) nodes += function.node_def_size();
  if (nodes > kMostNodes) {
    throw make_error(Code::resource_exhausted, "the graph has {} nodes, more than the {} that are shown", nodes,
                     kMostNodes);
  }
  return graph;
}

void append_graph(Json& json, std::string_view bytes, const std::string& scope) {
  const pb::GraphDef graph = parse_graph(bytes);
  append_nodes(json["nodes"], graph.node(), scope);
  for (const pb::FunctionDef& function : graph.library().function()) {
    Json nodes = Json::array(), inputs = Json::array();
    for (const auto& arg : function.signature().input_arg()) inputs.push_back(arg.name());
    append_nodes(nodes, function.node_def(), "");
    json["functions"].push_back({{"name", function.signature().name()}, {"inputs", inputs}, {"nodes", nodes}});
  }
}

Json empty_graph() { return {{"nodes", Json::array()}, {"functions", Json::array()}}; }

// The bytes of each field `field` of a message.
std::vector<std::string_view> fields_of(std::string_view message, uint32_t field) {
  std::vector<std::string_view> all;
  Cursor c(message);
  while (!c.done()) {
    uint32_t t = 0;
    std::string_view bytes;
    if (!c.tag(&t)) throw make_error(Code::data_loss, "the metadata of the run is damaged");
    if (t == tag(field, io::wire::kBytes)) {
      if (!c.bytes(&bytes)) throw make_error(Code::data_loss, "the metadata of the run is damaged");
      all.push_back(bytes);
    } else if (!c.skip(t)) {
      throw make_error(Code::data_loss, "the metadata of the run is damaged");
    }
  }
  return all;
}

}  // namespace

Json graph_json(std::string_view graph_def) {
  Json json = empty_graph();
  append_graph(json, graph_def, "");
  return json;
}

Json run_metadata_graph_json(std::string_view run_metadata) {
  constexpr uint32_t kPartitions = 3, kFunctionGraphs = 4, kBefore = 2, kAfter = 3, kParts = 1;
  std::vector<std::string_view> graphs;
  for (const std::string_view function : fields_of(run_metadata, kFunctionGraphs)) {
    for (const uint32_t kind : {kBefore, kAfter, kParts}) {
      const std::vector<std::string_view> found = fields_of(function, kind);
      graphs.insert(graphs.end(), found.begin(), found.end());
      if (!found.empty()) break;
    }
  }
  if (graphs.empty()) graphs = fields_of(run_metadata, kPartitions);
  Json json = empty_graph();
  for (size_t i = 0; i < graphs.size(); ++i) {
    append_graph(json, graphs[i], graphs.size() > 1 ? fmt::format("graph_{}/", i) : "");
  }
  return json;
}

}  // namespace runnel::board
