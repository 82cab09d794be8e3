#include <algorithm>
#include <array>
#include <ostream>
#include <set>

#include "runnel/base/format.h"
#include "runnel/keras/model.h"
#include "runnel/keras/text.h"
#include "runnel/op/composed.h"

namespace runnel::keras {
namespace {

std::string outputs_text(const FunctionalNode& node) {
  const std::vector<TensorSpec> specs = nest::flatten(node.outputs);
  const bool in_list = specs.size() != 1 || node.layer->class_name() == InputLayer::kClassName;
  std::string text;
  for (const TensorSpec& spec : specs) text += (text.empty() ? "" : ", ") + shape_tuple(spec.shape);
  return in_list ? "[" + text + "]" : text;
}

std::string memory_text(int64_t bytes) {
  double size = static_cast<double>(bytes);
  for (const char* unit : {"Byte", "KB", "MB", "GB"}) {
    if (size < 1024) return fmt::format("{:.2f} {}", size, unit);
    size /= 1024;
  }
  return fmt::format("{:.2f} TB", size);
}

// Text in columns that end at the given positions; what does not fit goes on in the next line.
class SummaryTable {
 public:
  SummaryTable(std::ostream& out, std::vector<size_t> ends) : out_(out), ends_(std::move(ends)) {}

  void line(char c) const { out_ << std::string(ends_.back(), c) << "\n"; }
  void blank() const { line(' '); }
  void row(std::vector<std::string> fields) const {
    const auto left = [&] {
      return std::any_of(fields.begin(), fields.end(), [](const auto& f) { return !f.empty(); });
    };
    while (left()) {
      std::string text;
      for (size_t i = 0; i < fields.size(); ++i) {
        const size_t begin = i == 0 ? 0 : ends_[i - 1];
        const size_t gap = i + 1 == fields.size() ? 0 : 2;
        const size_t cut = cut_at(fields[i], ends_[i] - begin - gap);
        if (i == 0) text += " ";
        text += fields[i].substr(0, cut);
        fields[i].erase(0, cut);
        if (text.size() < ends_[i]) text.resize(ends_[i], ' ');
      }
      out_ << text << "\n";
    }
  }

 private:
  // A list is broken after one of its items where that comes before the end of the column.
  static size_t cut_at(const std::string& text, size_t width) {
    size_t cut = std::min(width, text.size());
    for (const char* end : {"),", "],", "',"}) {
      const size_t at = text.substr(0, cut).find(end);
      if (at != std::string::npos) cut = std::min(cut, at + 2);
    }
    return cut;
  }

  std::ostream& out_;
  std::vector<size_t> ends_;
};

std::vector<const FunctionalNode*> nodes_of(const FunctionalGraph& graph, const Layer* layer) {
  std::vector<const FunctionalNode*> nodes;
  for (const FunctionalNodePtr& node : graph.nodes()) {
    if (node->layer.get() == layer) nodes.push_back(node.get());
  }
  return nodes;
}

std::string output_shape_text(const FunctionalGraph* graph, const Layer* layer) {
  if (!graph) return "multiple";
  std::set<std::string> shapes;
  for (const FunctionalNode* node : nodes_of(*graph, layer)) shapes.insert(outputs_text(*node));
  return shapes.size() == 1 ? *shapes.begin() : "multiple";
}

// "dense[0][0]": which call of which layer, and which of its outputs.
std::string connections_text(const FunctionalGraph& graph, const Layer* layer) {
  std::string text;
  for (const FunctionalNode* node : nodes_of(graph, layer)) {
    for (const Tensor& t : nest::flatten(node->inputs)) {
      const DescribedTensor d = described(t);
      if (!d.node) continue;
      const auto calls = nodes_of(graph, d.node->layer.get());
      const auto call = std::find(calls.begin(), calls.end(), d.node.get()) - calls.begin();
      text += fmt::format("{}'{}[{}][{}]'", text.empty() ? "" : ", ", d.node->layer->name(), call, d.index);
    }
  }
  return "[" + text + "]";
}

// Every layer follows the one before it: then nobody needs to be told what is connected to what.
bool is_chain(const FunctionalGraph& graph) {
  if (graph.nodes().size() != graph.layers().size()) return false;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::vector<Tensor> in = nest::flatten(graph.nodes()[i]->inputs);
    if (i == 0 ? !in.empty() : in.size() != 1 || described(in[0]).node != graph.nodes()[i - 1]) return false;
  }
  return true;
}

}  // namespace

void Model::summary(std::ostream& out, SourceSite where) const {
  composed(where, [&] { refuse_moved_from(); });
  if (!built() && weights().empty()) {
    throw make_error(Code::failed_precondition,
                     "[summary] model '{}' is not built: call it on a batch of data, or build_for_shape, before{}",
                     name(), user_line(where).at());
  }
  const FunctionalGraph* graph = is_functional() ? &this->graph() : nullptr;
  const bool connected = graph && !is_chain(*graph);
  const double width = connected ? 98 : 65;
  const std::vector<double> shares =
      connected ? std::vector<double>{.33, .55, .67, 1} : std::vector<double>{.45, .85, 1};
  std::vector<size_t> ends;
  for (const double share : shares) ends.push_back(static_cast<size_t>(width * share));
  const SummaryTable table(out, ends);
  out << "Model: \"" << name() << "\"\n";
  table.line('_');
  std::vector<std::string> head{"Layer (type)", "Output Shape", "Param #"};
  if (connected) head.emplace_back("Connected to");
  table.row(head);
  table.line('=');
  for (const Layer* layer : layers()) {
    int64_t params = 0;
    for (const Variable& v : layer->weights()) params += v.shape().num_elements();
    std::vector<std::string> fields{fmt::format("{} ({})", layer->name(), layer->class_name()),
                                    output_shape_text(graph, layer), std::to_string(params)};
    if (connected) fields.push_back(connections_text(*graph, layer));
    table.row(fields);
    table.blank();
  }
  table.line('=');
  const auto total = [](const std::vector<Variable>& variables) {
    std::array<int64_t, 2> sums{0, 0};
    for (const Variable& v : variables) {
      sums[0] += v.shape().num_elements();
      sums[1] += v.shape().num_elements() * static_cast<int64_t>(dtype_size(v.dtype()));
    }
    return sums;
  };
  const auto show = [&](const char* what, const std::vector<Variable>& variables) {
    const auto [count, bytes] = total(variables);
    out << fmt::format("{}: {} ({})\n", what, count, memory_text(bytes));
  };
  show("Total params", weights());
  show("Trainable params", trainable_weights());
  show("Non-trainable params", non_trainable_weights());
  table.line('_');
}

}  // namespace runnel::keras
