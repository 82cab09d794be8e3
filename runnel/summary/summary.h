#pragma once

// Values for TensorBoard: tf.summary. They go to the writer of the thread (writer.h); where there is none, or where
// record_if says no, nothing is done, not even the value is worked out. Inside a function they are ops of its graph.
// The tag is the name with the name scopes around it. docs/summary.md
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runnel/graph/graph.h"
#include "runnel/graph/name_scope.h"
#include "runnel/op/operand.h"
#include "runnel/summary/writer.h"

namespace runnel::summary {

// Each gives true where something was written. Without a step they take the default of the thread, and it is an Error
// where that is not set. `description` may be Markdown.

// A number, as float32.
RUNNEL_API Tensor scalar(std::string_view name, const Operand& data, const Step& step = {},
                         std::string_view description = "");

// Images [k, height, width, channels] with 1 to 4 channels (grey, grey and alpha, RGB, RGBA): floats from 0 to 1,
// integers of their whole range. The first max_outputs of them.
RUNNEL_API Tensor image(std::string_view name, const Operand& data, const Step& step = {}, int64_t max_outputs = 3,
                        std::string_view description = "");

// Clips [k, frames, channels] from -1 to 1. The first max_outputs of them.
RUNNEL_API Tensor audio(std::string_view name, const Operand& data, const Operand& sample_rate, const Step& step = {},
                        int64_t max_outputs = 3, const std::string& encoding = "wav",
                        std::string_view description = "");

// How the elements of a tensor of any shape are spread, in so many equal buckets.
RUNNEL_API Tensor histogram(std::string_view name, const Operand& data, const Step& step = {}, int64_t buckets = 30,
                            std::string_view description = "");

// Markdown; strings of rank 1 and 2 are shown as tables.
RUNNEL_API Tensor text(std::string_view name, const Operand& data, const Step& step = {},
                       std::string_view description = "");

// What a plugin is to know of the values of a tag.
struct RUNNEL_API Metadata {
  std::string plugin_name = {};
  std::string plugin_content = {};
  std::string display_name = {};
  std::string description = {};
  std::string serialize() const;  // a SummaryMetadata message
};

// Any tensor under any tag, which takes no scope. `metadata` is a SummaryMetadata message, or empty.
RUNNEL_API Tensor write(std::string_view tag, const Operand& tensor, const Step& step = {},
                        std::string_view metadata = "");
// The same of a tensor that is only made where it is written.
RUNNEL_API Tensor write(std::string_view tag, const std::function<Tensor()>& tensor, const Step& step = {},
                        std::string_view metadata = "", SourceSite where = SourceSite::current());

// A graph, at step 0; not inside a function. The second takes the bytes of a GraphDef.
RUNNEL_API bool graph(const Graph& graph, SourceSite where = SourceSite::current());
RUNNEL_API bool graph_def(std::string_view graph_def, SourceSite where = SourceSite::current());

// The bytes of a RunMetadata message: the graphs in it alone, or with what was measured.
RUNNEL_API Tensor run_metadata_graphs(std::string_view name, std::string_view run_metadata, const Step& step = {},
                                      SourceSite where = SourceSite::current());
RUNNEL_API Tensor run_metadata(std::string_view name, std::string_view run_metadata, const Step& step = {},
                               SourceSite where = SourceSite::current());
// The configuration of a Keras model, as JSON.
RUNNEL_API Tensor keras_model(std::string_view name, const std::string& json, const Step& step = {},
                              SourceSite where = SourceSite::current());

namespace experimental {
// Summary messages as they are; inside a function a tensor of them.
RUNNEL_API Tensor write_raw_pb(const Operand& tensor, const Step& step = {});
}  // namespace experimental

}  // namespace runnel::summary
