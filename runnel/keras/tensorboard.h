#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runnel/keras/callbacks.h"
#include "runnel/summary/writer.h"

namespace runnel::keras {

// When values are written: after every epoch, or after so many batches ("batch" is 1) too.
class RUNNEL_API UpdateFrequency {
 public:
  static constexpr const char* kTypeName = "\"epoch\", \"batch\" or int";
  UpdateFrequency(const char* text) : UpdateFrequency(std::string(text)) {}  // NOLINT: implicit, as all here
  UpdateFrequency(const std::string& text);                                  // NOLINT
  template <std::integral I>
  UpdateFrequency(I batches) : UpdateFrequency(static_cast<int64_t>(batches), 0) {}  // NOLINT
  int64_t batches() const { return batches_; }                                       // 0: epochs alone

 private:
  UpdateFrequency(int64_t batches, int);
  int64_t batches_ = 0;
};

// Batches of a training that are profiled, counted from 1: one, or from the first to the second; 0 is none.
class RUNNEL_API ProfileBatch {
 public:
  static constexpr const char* kTypeName = "int or pair(int)";
  template <std::integral I>
  ProfileBatch(I batch) : ProfileBatch(static_cast<int64_t>(batch), static_cast<int64_t>(batch)) {}  // NOLINT
  ProfileBatch(int64_t first, int64_t last);
  int64_t first() const { return first_; }
  int64_t last() const { return last_; }

 private:
  int64_t first_ = 0, last_ = 0;
};

struct TensorBoardOptions {
  std::string log_dir = "logs";
  int64_t histogram_freq = 0;
  bool write_graph = true;
  bool write_images = false;
  bool write_steps_per_second = false;
  UpdateFrequency update_freq = "epoch";
  ProfileBatch profile_batch = 0;
  int64_t embeddings_freq = 0;
  std::map<std::string, std::string> embeddings_metadata = {};
  bool keep_going = false;
  static constexpr auto fields() {
    using O = TensorBoardOptions;
    return field_list(
        field("log_dir", &O::log_dir, "the folder; runs are its folders train and validation"),
        field("histogram_freq", &O::histogram_freq, "epochs between two histograms of the weights; 0: none"),
        field("write_graph", &O::write_graph, "the model's layers, and the graph of the training step"),
        field("write_images", &O::write_images, "the weights as images too, with their histograms"),
        field("write_steps_per_second", &O::write_steps_per_second, "how fast training is"),
        field("update_freq", &O::update_freq, "\"epoch\", or how many batches are between two values of batches"),
        field("profile_batch", &O::profile_batch,
              "the batch, or the first and the last one, that are profiled; 0: none"),
        field("embeddings_freq", &O::embeddings_freq, "epochs between two checkpoints for the projector; 0: none"),
        field("embeddings_metadata", &O::embeddings_metadata,
              "layer -> file with a line for each of its rows, for the projector"),
        field("keep_going", &O::keep_going,
              "an event file that cannot be written (a full disk) is one warning and training goes on"));
  }
};
// Writes what TensorBoard shows: losses and metrics of epochs and batches, weights, the model, embeddings. One folder
// is for one program that trains.
class RUNNEL_API TensorBoard : public Callback {
 public:
  static constexpr const char* kClassName = "TensorBoard";
  using Options = TensorBoardOptions;
  explicit TensorBoard(TensorBoardOptions options = {});
  ~TensorBoard() override;
  // A template, so that settings in braces are not taken for a string.
  template <std::convertible_to<std::string> S>
  explicit TensorBoard(S log_dir) : TensorBoard(TensorBoardOptions{.log_dir = std::move(log_dir)}) {}
  void on_train_begin(const Logs&) override;
  void on_train_end(const Logs&) override;
  void on_epoch_begin(int64_t epoch, const Logs&) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_batch_begin(int64_t batch, const Logs&) override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_test_end(const Logs& logs) override;
  bool watches_batches() const override;

  // What fit and evaluate do for it: while batches run, the writer of the run is the default of the thread, so that
  // summaries of layers and steps are recorded, at every update_freq-th batch, with the number of the batch as step.
  class RUNNEL_API BatchSummaries {
   public:
    BatchSummaries(const summary::SummaryWriter& writer, const Variable& step, int64_t frequency);

   private:
    summary::DefaultWriter writer_;
    summary::RecordIf condition_;
  };
  bool records_batches() const { return options_.update_freq.batches() > 0; }
  std::unique_ptr<BatchSummaries> batch_summaries(const std::string& run);
  Variable step_of(const std::string& run);

 private:
  summary::SummaryWriter& writer(const std::string& run);
  void close_writers();
  int64_t iterations() const;
  void write_model();
  void write_train_graph();
  void write_weights(int64_t epoch);
  void write_projector() const;
  void start_profile();
  void stop_profile();
  void drop_profile() noexcept;

  TensorBoardOptions options_;
  std::map<std::string, summary::SummaryWriter> writers_;  // by run
  std::map<std::string, Variable> steps_;                  // by run
  bool training_ = false;
  bool graph_is_due_ = false;
  int64_t iterations_before_ = 0;  // of the epoch
  double epoch_begun_ = 0, batch_begun_ = 0;
  int64_t batches_ = 0;  // of the training
  bool tracing_ = false, profiling_ = false;
};

}  // namespace runnel::keras
