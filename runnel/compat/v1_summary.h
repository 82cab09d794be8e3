#pragma once

// Summaries as in TensorFlow 1: ops that give serialized Summary messages, collected by the graph, and a writer for
// what a session fetches.
//   v1::summary::scalar("loss", loss);
//   const Tensor merged = v1::summary::merge_all();
//   v1::summary::FileWriter writer("logs", v1::get_default_graph());
//   writer.add_summary(session.run(merged, {{x, batch}}), step);
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/compat/v1.h"

namespace runnel::compat::v1 {

// Names of collections.
struct GraphKeys {
  static constexpr const char* SUMMARIES = "summaries";
};
// What belongs together in the default graph, under a name.
RUNNEL_API void add_to_collection(const std::string& name, const Tensor& tensor);
// In the order in which it was added. `scope` is a regular expression that the names begin with; empty: all.
RUNNEL_API std::vector<Tensor> get_collection(const std::string& name, const std::string& scope = "");

namespace summary {

struct SummaryOptions {
  std::vector<std::string> collections = {GraphKeys::SUMMARIES};
  std::string family = {};  // stands before the tag: TensorBoard shows those of a family together
};

// Each is a string, a Summary message. The node has the name; the tag is the name with the scopes around it, and with
// a number where it is taken. Where ops run eagerly they run at once; where there is a writer of TensorFlow 2 with a
// step (summary/writer.h) the value goes there instead, and the string is empty.
RUNNEL_API Tensor scalar(const std::string& name, const Operand& tensor, const SummaryOptions& options = {});
// Images [k, height, width, 1, 3 or 4]: uint8 as they are, floats scaled to what can be shown, each image for itself.
RUNNEL_API Tensor image(const std::string& name, const Operand& tensor, int64_t max_outputs = 3,
                        const SummaryOptions& options = {});
// Clips [k, frames] or [k, frames, channels] from -1 to 1.
RUNNEL_API Tensor audio(const std::string& name, const Operand& tensor, const Operand& sample_rate,
                        int64_t max_outputs = 3, const SummaryOptions& options = {});
RUNNEL_API Tensor histogram(const std::string& name, const Operand& values, const SummaryOptions& options = {});
RUNNEL_API Tensor text(const std::string& name, const Operand& tensor, const SummaryOptions& options = {});

struct TensorSummaryOptions {
  std::string summary_description = {};
  std::vector<std::string> collections = {GraphKeys::SUMMARIES};
  std::string summary_metadata = {};  // a SummaryMetadata message
  std::string family = {};
  std::string display_name = {};
};
RUNNEL_API Tensor tensor_summary(const std::string& name, const Operand& tensor,
                                 const TensorSummaryOptions& options = {});

// One Summary with the values of several; a tag may stand in one of them only.
RUNNEL_API Tensor merge(const std::vector<Tensor>& inputs, const std::vector<std::string>& collections = {},
                        const std::string& name = "", SourceSite where = SourceSite::current());
// Those of a collection; undefined where it is empty. `scope` as for get_collection.
RUNNEL_API Tensor merge_all(const std::string& key = GraphKeys::SUMMARIES, const std::string& scope = "",
                            const std::string& name = "", SourceSite where = SourceSite::current());

// A number under a tag, made by hand.
struct SimpleValue {
  std::string tag;
  float simple_value = 0;
};

struct SessionLog {
  enum class Status : uint8_t { unspecified = 0, start = 1, stop = 2, checkpoint = 3 };
  Status status = Status::unspecified;
  std::string checkpoint_path = {};
  std::string msg = {};
};

struct FileWriterOptions {
  int64_t max_queue = 10;   // with more events than this waiting, they are written
  double flush_secs = 120;  // none waits longer
  std::string filename_suffix = {};
};

// Writes event files. A writer that is closed takes nothing more, with a warning, until it is opened again; then it
// goes on in a new file. Safe from many threads. Not for programs that run eagerly: they have summary/writer.h.
class RUNNEL_API FileWriter {
 public:
  explicit FileWriter(const std::string& logdir, const FileWriterOptions& options = {},
                      SourceSite where = SourceSite::current());
  // With the graph in the file, also as a MetaGraphDef.
  FileWriter(const std::string& logdir, const Graph& graph, const FileWriterOptions& options = {},
             SourceSite where = SourceSite::current());
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // A Summary message, as a session gives it or as bytes. What plugins are to know is written with the first value of
  // a tag only.
  void add_summary(const Tensor& summary, int64_t global_step = 0, SourceSite where = SourceSite::current());
  template <std::convertible_to<std::string_view> Message>
  void add_summary(const Message& summary, int64_t global_step = 0, SourceSite where = SourceSite::current()) {
    add_message(summary, global_step, where);
  }
  // Numbers made by hand: {{"loss", 0.5f}}.
  void add_simple_values(const std::vector<SimpleValue>& values, int64_t global_step = 0,
                         SourceSite where = SourceSite::current());
  // A whole Event message, as bytes.
  void add_event(std::string_view event, SourceSite where = SourceSite::current());
  void add_graph(const Graph& graph, int64_t global_step = 0, SourceSite where = SourceSite::current());
  // The bytes of a GraphDef, a MetaGraphDef, a RunMetadata. A tag of run metadata may be given once.
  void add_graph_def(std::string_view graph_def, int64_t global_step = 0, SourceSite where = SourceSite::current());
  void add_meta_graph(std::string_view meta_graph_def, int64_t global_step = 0,
                      SourceSite where = SourceSite::current());
  void add_run_metadata(std::string_view run_metadata, const std::string& tag, int64_t global_step = 0,
                        SourceSite where = SourceSite::current());
  void add_session_log(const SessionLog& log, int64_t global_step = 0, SourceSite where = SourceSite::current());

  // Returns once all that was given is with the system.
  void flush(SourceSite where = SourceSite::current());
  void close(SourceSite where = SourceSite::current());
  void reopen(SourceSite where = SourceSite::current());
  const std::string& get_logdir() const;

 private:
  void add_message(std::string_view summary, int64_t global_step, const SourceSite& where);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace summary
}  // namespace runnel::compat::v1
