#include "runnel/keras/tensorboard.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/keras/layers/embedding.h"
#include "runnel/keras/model.h"
#include "runnel/keras/training.h"
#include "runnel/ops/array.h"
#include "runnel/ops/operators.h"
#include "runnel/summary/profiler.h"
#include "runnel/summary/summary.h"
#include "runnel/summary/trace.h"
#include "runnel/track/checkpoint.h"

namespace runnel::keras {
namespace {

double board_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// "dense/kernel:0" as a tag.
std::string weight_tag(const Variable& weight) {
  std::string name = weight.name();
  if (name.find(':') == std::string::npos) name += ":0";
  std::ranges::replace(name, ':', '_');
  return name;
}

// A weight as grey images: a bias as a line, a matrix with its longer side across, a kernel as one image for each of
// its filters. Undefined where it has too many dimensions.
Tensor weight_image(const Tensor& weight) {
  Tensor w = squeeze(weight);
  switch (w.rank()) {
    case 1: return reshape(w, {1, w.shape()[0], 1, 1});
    case 2:
      if (w.shape()[0] > w.shape()[1]) w = transpose(w);
      return reshape(w, {1, w.shape()[0], w.shape()[1], 1});
    case 3: w = transpose(w, {2, 0, 1}); return expand_dims(w, -1);
    case 4: {
      const int64_t channels = w.shape()[3];
      return channels == 1 || channels == 3 || channels == 4 ? w : Tensor();
    }
    default: return {};
  }
}

// As in the text form of protobuf's messages.
std::string quoted_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

UpdateFrequency::UpdateFrequency(const std::string& text) {
  if (text == "batch") {
    batches_ = 1;
  } else if (text != "epoch") {
    throw invalid_argument("[TensorBoard] update_freq must be \"epoch\", \"batch\" or a number of batches, got \"{}\"",
                           text);
  }
}

UpdateFrequency::UpdateFrequency(int64_t batches, int) : batches_(batches) {
  if (batches < 1) throw invalid_argument("[TensorBoard] update_freq must be at least 1 batch, got {}", batches);
}

ProfileBatch::ProfileBatch(int64_t first, int64_t last) : first_(first), last_(last) {
  if (first < 0 || last < first) {
    throw invalid_argument("[TensorBoard] profile_batch must be a batch or a first and a last one, got {} and {}",
                           first, last);
  }
}

TensorBoard::TensorBoard(TensorBoardOptions options) : options_(std::move(options)) {}

// A training that an error ended left them on.
TensorBoard::~TensorBoard() { drop_profile(); }

bool TensorBoard::watches_batches() const {
  return options_.update_freq.batches() > 0 || options_.write_steps_per_second || options_.profile_batch.last() > 0;
}

// With the graphs of the functions that these batches run. What another profile prevents is not worth the training.
void TensorBoard::start_profile() {
  summary::trace_on();
  tracing_ = true;
  try {
    profiler::start(options_.log_dir, SourceSite());
    profiling_ = true;
  } catch (const Error& e) {
    if (e.code() != Code::already_exists) throw;
    log_error("[TensorBoard] profile_batch: {}", e.what());
  }
}

void TensorBoard::stop_profile() {
  const bool profiled = std::exchange(profiling_, false);
  try {
    // First the profile: what writing the graphs takes is no part of the batches.
    if (profiled) profiler::stop(true, SourceSite());
    const int64_t last = options_.profile_batch.last();
    const auto all_recorded = summary::record_if(true);
    const auto scope = writer("train").as_default();
    summary::trace_export(fmt::format("batch_{}", last), last, "", SourceSite());
    tracing_ = false;
  } catch (const Error& e) {
    drop_profile();  // the trace may still be on
    if (!options_.keep_going) throw;
    log_error("[TensorBoard] profile_batch: {}", e.what());
  }
}

void TensorBoard::drop_profile() noexcept {
  try {
    if (std::exchange(profiling_, false)) profiler::stop(false, SourceSite());
    if (std::exchange(tracing_, false)) summary::trace_off();
  } catch (const std::exception& e) {
    log_warning("[TensorBoard] {}", e.what());  // the program has ended them itself
  }
}

summary::SummaryWriter& TensorBoard::writer(const std::string& run) {
  summary::SummaryWriter& made = writers_[run];
  if (made.is_noop()) {
    made = summary::create_file_writer(join_path(options_.log_dir, run), {.keep_going = options_.keep_going});
  }
  return made;
}

void TensorBoard::close_writers() {
  for (const auto& [run, writer] : writers_) writer.close();
  writers_.clear();
  steps_.clear();
}

TensorBoard::BatchSummaries::BatchSummaries(const summary::SummaryWriter& writer, const Variable& step,
                                            int64_t frequency)
    : writer_(writer, step), condition_([step, frequency] { return step % frequency == 0; }) {}

std::unique_ptr<TensorBoard::BatchSummaries> TensorBoard::batch_summaries(const std::string& run) {
  return std::make_unique<BatchSummaries>(writer(run), step_of(run), options_.update_freq.batches());
}

Variable TensorBoard::step_of(const std::string& run) {
  Variable& step = steps_[run];
  if (!step.defined()) step = Variable(int64_t{0}, {.name = run + "_step", .trainable = false});
  return step;
}

int64_t TensorBoard::iterations() const { return model()->optimizer().iterations().value().item<int64_t>(); }

void TensorBoard::on_train_begin(const Logs&) {
  training_ = true;
  drop_profile();
  batches_ = 0;
  graph_is_due_ = options_.write_graph;
  const auto scope = writer("train").as_default();
  if (options_.write_graph) write_model();
  if (options_.embeddings_freq > 0) write_projector();
}

void TensorBoard::on_train_end(const Logs&) {
  if (tracing_) stop_profile();  // there were fewer batches
  training_ = false;
  close_writers();
}

void TensorBoard::on_epoch_begin(int64_t, const Logs&) {
  if (!options_.write_steps_per_second) return;
  iterations_before_ = iterations();
  epoch_begun_ = board_seconds();
}

void TensorBoard::on_train_batch_begin(int64_t, const Logs&) {
  batch_begun_ = board_seconds();
  if (++batches_ == options_.profile_batch.first()) start_profile();
}

void TensorBoard::on_train_batch_end(int64_t, const Logs& logs) {
  const double seconds = board_seconds() - batch_begun_;
  if (tracing_ && batches_ >= options_.profile_batch.last()) stop_profile();
  write_train_graph();
  const int64_t frequency = options_.update_freq.batches();
  const TrainFunction* const trained = TrainFunction::of(*model());
  if (frequency == 0 || !trained || trained->batches % frequency != 0) return;
  const int64_t step = trained->batches;
  const auto all_recorded = summary::record_if(true);
  const auto scope = writer("train").as_default(step);
  if (options_.write_steps_per_second) summary::scalar("batch_steps_per_second", 1 / seconds);
  for (const auto& [name, value] : logs) summary::scalar("batch_" + name, value);
}

void TensorBoard::on_test_end(const Logs& logs) {
  {
    const auto all_recorded = summary::record_if(true);
    const auto scope = writer("validation").as_default(iterations());
    for (const auto& [name, value] : logs) summary::scalar("evaluation_" + name + "_vs_iterations", value);
  }
  if (!training_) close_writers();
}

void TensorBoard::on_epoch_end(int64_t epoch, Logs& logs) {
  constexpr std::string_view validation = "val_";
  const auto all_recorded = summary::record_if(true);
  if (params().verbose == 1) write_train_graph();  // there Keras looks at batches
  for (const auto& [name, value] : logs) {
    const bool validates = name.starts_with(validation);
    const auto scope = writer(validates ? "validation" : "train").as_default(epoch);
    summary::scalar("epoch_" + (validates ? name.substr(validation.size()) : name), value);
  }
  const auto scope = writer("train").as_default(epoch);
  const Optimizer& optimizer = model()->optimizer();
  const Config described = optimizer.get_config();
  const Config* rate = described.find("learning_rate");
  if (rate && rate->is_map()) summary::scalar("epoch_learning_rate", optimizer.learning_rate());  // it has a schedule
  if (options_.write_steps_per_second) {
    const auto steps = static_cast<double>(iterations() - iterations_before_);
    summary::scalar("epoch_steps_per_second", steps / (board_seconds() - epoch_begun_));
  }
  if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) write_weights(epoch);
  if (options_.embeddings_freq > 0 && epoch % options_.embeddings_freq == 0) {
    const std::string name = fmt::format("keras_embedding.ckpt-{}", epoch);
    train::Checkpoint(train::CheckpointPart(*model())).write(join_path(join_path(options_.log_dir, "train"), name));
  }
}

void TensorBoard::write_model() {
  if (model()->is_functional() || model()->class_name() == "Sequential") {
    summary::keras_model("keras", model()->to_json(), 0);
  }
}

// Once a step was traced: at the first batch that somebody looks at, as in Keras. A step that runs eagerly has none.
void TensorBoard::write_train_graph() {
  if (!std::exchange(graph_is_due_, false)) return;
  const TrainFunction* const trained = TrainFunction::of(*model());
  const std::shared_ptr<const Graph> graph = trained ? trained->graph.lock() : nullptr;
  if (!graph) return;
  const auto all_recorded = summary::record_if(true);
  const auto scope = writer("train").as_default();
  try {
    summary::graph(*graph);
  } catch (const Error& e) {
    if (e.code() != Code::unimplemented) throw;
    log_warning("[TensorBoard] the graph of the training step is not written: {}", e.what());
  }
}

void TensorBoard::write_weights(int64_t epoch) {
  for (const Layer* layer : model()->layers()) {
    for (const Variable& weight : layer->weights()) {
      const std::string tag = weight_tag(weight);
      summary::histogram(tag + "/histogram", weight, epoch);
      if (!options_.write_images) continue;
      if (const Tensor pictures = weight_image(weight); pictures.defined()) {
        summary::image(tag + "/image", pictures, epoch);
      }
    }
  }
}

// The projector looks for this file beside the runs; it names the variable in the checkpoints.
void TensorBoard::write_projector() const {
  std::string config;
  std::map<std::string, std::string> metadata = options_.embeddings_metadata;
  int64_t number = 0;  // among the layers that have weights, as the object graph counts them
  for (const Layer* layer : model()->layers()) {
    const bool has_weights = !layer->weights().empty() || dynamic_cast<const Embedding*>(layer) != nullptr;
    if (dynamic_cast<const Embedding*>(layer)) {
      config += fmt::format(
          "embeddings {{\n  tensor_name: \"layer_with_weights-{}/embeddings/.ATTRIBUTES/VARIABLE_VALUE\"\n", number);
      if (const auto file = metadata.find(layer->name()); file != metadata.end()) {
        config += fmt::format("  metadata_path: {}\n", quoted_text(file->second));
        metadata.erase(file);
      }
      config += "}\n";
    }
    number += has_weights;
  }
  if (!metadata.empty()) {
    throw invalid_argument("[TensorBoard] embeddings_metadata names '{}', which is no Embedding layer of the model",
                           metadata.begin()->first);
  }
  Env& env = Env::posix();
  env.create_dirs(options_.log_dir);
  env.write_file(join_path(options_.log_dir, "projector_config.pbtxt"), as_bytes(config));
}

}  // namespace runnel::keras
