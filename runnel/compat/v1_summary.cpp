// Summaries as ops of a graph, and the collections that find them again.
#include "runnel/compat/v1_summary.h"

#include <regex>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/compat/v1_graph.h"
#include "runnel/graph/name_scope.h"
#include "runnel/io/event.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/summary/summary.h"

namespace runnel::compat::v1 {

void add_to_collection(const std::string& name, const Tensor& tensor) {
  GraphState& state = current_state("add_to_collection");
  state.output_of(tensor);  // an Error where it is of another graph
  state.collections[name].push_back(tensor);
}

std::vector<Tensor> get_collection(const std::string& name, const std::string& scope) {
  const GraphState& state = current_state("get_collection");
  const auto found = state.collections.find(name);
  if (found == state.collections.end()) return {};
  if (scope.empty()) return found->second;
  std::vector<Tensor> all;
  try {
    const std::regex wanted(scope);
    for (const Tensor& t : found->second) {
      const NodeOutput output = state.output_of(t);
      const std::string full = fmt::format("{}:{}", output.node->name, output.index);
      if (std::regex_search(full, wanted, std::regex_constants::match_continuous)) all.push_back(t);
    }
  } catch (const std::regex_error& e) {
    throw invalid_argument("[get_collection] '{}' is no regular expression: {}", scope, e.what());
  }
  return all;
}

namespace summary {
namespace {

// A name as one of a node: other characters become underscores, slashes at the beginning go.
std::string clean_tag(const std::string& name) {
  std::string clean = name;
  for (char& c : clean) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) == 0 && std::string_view("-/_.").find(c) == std::string_view::npos) c = '_';
  }
  clean.erase(0, clean.find_first_not_of('/'));
  if (clean != name) log_info("Summary name {} is illegal; using {} instead.", name, clean);
  return clean;
}

// Where a summary stands while its op is made: a scope of its own, whose name the node gets.
class SummaryScope {
 public:
  SummaryScope(const std::string& name, const std::string& family)
      : scope_((family.empty() ? "" : clean_tag(family) + "/") + clean_tag(name)),
        tag_(family.empty() ? scope_.path() : clean_tag(family) + "/" + scope_.path()) {}
  const std::string& node_name() const { return scope_.path(); }
  const std::string& tag() const { return tag_; }

 private:
  NameScope scope_;
  std::string tag_;
};

// Does the value go to a writer of TensorFlow 2?
bool goes_to_writer() {
  return executing_eagerly() && runnel::summary::has_default_writer() &&
         runnel::summary::experimental::get_step().defined();
}
Tensor no_summary() { return Tensor(""); }

// Calls `write` with the tag where a writer of TensorFlow 2 takes the value, else makes the op by `call`.
template <class Write, class Call>
Tensor summary_op(const std::string& name, const std::string& family, const std::vector<std::string>& collections,
                  const SourceSite& where, const Write& write, const Call& call) {
  return composed(where, [&]() -> Tensor {
    if (goes_to_writer()) {
      const SummaryScope scope(name, family);
      const ContextScope<&ThreadContext::name_scope> root(nullptr);  // the tag is whole
      write(scope.tag());
      return no_summary();
    }
    if (executing_eagerly()) return call(SummaryScope(name, family).tag());
    GraphState& state = building_state("summary");
    const SummaryScope scope(name, family);
    const size_t before = state.graph()->nodes().size();
    const Tensor made = call(scope.tag());
    Node& node = *state.output_of(made).node;
    node.name = scope.node_name();
    // Constants made for the op are named after its inputs.
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Node& in = *node.inputs[i].node;
      if (in.is("Const") && static_cast<size_t>(in.id) >= before) {
        state.name(in, scope.node_name() + "/" + node.op->inputs[i].name);
      }
    }
    for (const std::string& collection : collections) add_to_collection(collection, made);
    return made;
  });
}

}  // namespace

Tensor scalar(const std::string& name, const Operand& tensor, const SummaryOptions& options) {
  return summary_op(
      name, options.family, options.collections, tensor.where(),
      [&](const std::string& tag) { runnel::summary::scalar(tag, tensor); },
      [&](const std::string& tag) {
        return call_op("ScalarSummary", {Tensor(tag), tensor.value()})[0];
      });
}

Tensor image(const std::string& name, const Operand& tensor, int64_t max_outputs, const SummaryOptions& options) {
  return summary_op(
      name, options.family, options.collections, tensor.where(),
      [&](const std::string& tag) { runnel::summary::image(tag, tensor, {}, max_outputs); },
      [&](const std::string& tag) {
        return call_op("ImageSummary", {Tensor(tag), tensor.value()}, {{"max_images", max_outputs}})[0];
      });
}

Tensor audio(const std::string& name, const Operand& tensor, const Operand& sample_rate, int64_t max_outputs,
             const SummaryOptions& options) {
  const auto write = [&](const std::string& tag) {
    const Tensor clips = tensor.value();
    runnel::summary::audio(tag, clips.partial_shape().rank() == 2 ? expand_dims(clips, -1) : clips,
                           cast(sample_rate.value(), DType::int32), {}, max_outputs);
  };
  return summary_op(name, options.family, options.collections, tensor.where(), write, [&](const std::string& tag) {
    const Tensor rate = sample_rate.is_literal() ? sample_rate.as(DType::float32) : sample_rate.value();
    return call_op("AudioSummaryV2", {Tensor(tag), tensor.value(), rate}, {{"max_outputs", max_outputs}})[0];
  });
}

Tensor histogram(const std::string& name, const Operand& values, const SummaryOptions& options) {
  return summary_op(
      name, options.family, options.collections, values.where(),
      [&](const std::string& tag) { runnel::summary::histogram(tag, values); },
      [&](const std::string& tag) {
        return call_op("HistogramSummary", {Tensor(tag), values.value()})[0];
      });
}

Tensor text(const std::string& name, const Operand& tensor, const SummaryOptions& options) {
  if (const Tensor* given = tensor.tensor(); !given || given->dtype() != DType::string) {
    throw invalid_argument("[summary::text] '{}' must be strings, got {}{}", name,
                           dtype_name(given ? given->dtype() : tensor.natural_dtype()), tensor.where().at());
  }
  if (goes_to_writer()) {
    runnel::summary::text(name, tensor);
    return no_summary();
  }
  return tensor_summary(name, tensor,
                        {.collections = options.collections,
                         .summary_metadata = runnel::summary::Metadata{.plugin_name = "text"}.serialize(),
                         .family = options.family});
}

Tensor tensor_summary(const std::string& name, const Operand& tensor, const TensorSummaryOptions& options) {
  std::string metadata = options.summary_metadata;  // a field that comes again counts
  if (!options.display_name.empty()) io::append_field(metadata, 2, std::string_view(options.display_name));
  if (!options.summary_description.empty()) {
    io::append_field(metadata, 3, std::string_view(options.summary_description));
  }
  const auto call = [&](const std::string& tag) {
    return call_op("TensorSummaryV2", {Tensor(tag), tensor.value(), Tensor(metadata)})[0];
  };
  // TensorFlow has no other way for it: it is an op where there is a writer, too.
  return composed(tensor.where(), [&]() -> Tensor {
    if (executing_eagerly()) return call(SummaryScope(name, options.family).tag());
    return summary_op(
        name, options.family, options.collections, tensor.where(), [](const std::string&) {}, call);
  });
}

Tensor merge(const std::vector<Tensor>& inputs, const std::vector<std::string>& collections, const std::string& name,
             SourceSite where) {
  return composed(where, [&] {
    if (executing_eagerly()) {
      throw make_error(
          Code::failed_precondition,
          "[summary::merge] ops run eagerly here, where there is nothing to merge: give values to a writer "
          "of runnel/summary/summary.h");
    }
    GraphState& state = building_state("summary::merge");
    if (inputs.empty()) throw invalid_argument("[summary::merge] there are no summaries to merge");
    const NameScope scope(name.empty() ? "Merge" : clean_tag(name));
    const Tensor merged = call_op("MergeSummary", inputs)[0];
    if (!name.empty()) state.name(*state.output_of(merged).node, scope.path() + "/" + clean_tag(name));
    for (const std::string& collection : collections) add_to_collection(collection, merged);
    return merged;
  });
}

Tensor merge_all(const std::string& key, const std::string& scope, const std::string& name, SourceSite where) {
  return composed(where, [&] {
    if (executing_eagerly()) return merge({}, {}, name, SourceSite());  // the Error
    const std::vector<Tensor> all = get_collection(key, scope);
    return all.empty() ? Tensor() : merge(all, {}, name, SourceSite());
  });
}

}  // namespace summary
}  // namespace runnel::compat::v1
