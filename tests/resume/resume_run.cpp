// usage: resume_run FOLDER LOSSES SEED [EPOCHS]    trains on MNIST with fit({.resume = FOLDER}); kill_test.py kills it
// Appends "STEP LOSS" to the file LOSSES for every step, and at the end the history and the weights, floats to the bit.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;  // NOLINT: a program

class LossLog : public keras::Callback {
 public:
  explicit LossLog(std::FILE* file) : file_(file) {}
  void on_train_batch_end(int64_t, const keras::Logs& logs) override {
    const auto step = model()->optimizer().iterations().value().item<int64_t>();
    std::fprintf(file_, "%" PRId64 " %a\n", step, logs["loss"]);
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
};

data::AnyDataset noisy_digits(int64_t count) {
  const auto [train, test] = keras::datasets::mnist::load_data();
  return data::AnyDataset(data::from_tensor_slices(train.first(slice(0, count)), train.second(slice(0, count)))
                              .shuffle(500)
                              .map(
                                  [](const Tensor& x, const Tensor& y) {
                                    const Tensor noise = random::uniform({28, 28}, 0, 0.2);
                                    return std::tuple{cast(x, float32) / 255.0 + noise, cast(y, int32)};
                                  },
                                  {.num_parallel_calls = 2})
                              .batch(32)
                              .prefetch(2));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string folder = argv[1];
  keras::utils::set_random_seed(std::atoi(argv[3]));
  std::FILE* const file = std::fopen(argv[2], "a");
  if (!file) return 2;
  keras::Sequential model({keras::Flatten(), keras::Dense(32, {.activation = "relu"}), keras::Dropout(0.4),
                           keras::Dense(10, {.activation = "softmax"})});
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  LossLog log(file);
  keras::ReduceLROnPlateau plateau({.monitor = "loss", .factor = 0.5, .patience = 1, .min_delta = 0.5});
  keras::FitOptions options{.epochs = argc > 4 ? std::atoi(argv[4]) : 3, .verbose = 0, .callbacks = {log, plateau}};
  options.resume = folder;
  options.resume_freq = 5;
  const keras::History history = model.fit(noisy_digits(1920), options);
  for (const auto& [name, values] : history.history) {
    std::fprintf(file, "history %s", name.c_str());
    for (const double value : values) std::fprintf(file, " %a", value);
    std::fprintf(file, "\n");
  }
  for (const Tensor& weight : model.get_weights()) {
    std::fprintf(file, "weights");
    for (const float value : weight.to_vector<float>()) std::fprintf(file, " %a", static_cast<double>(value));
    std::fprintf(file, "\n");
  }
  std::fclose(file);
  return 0;
}
