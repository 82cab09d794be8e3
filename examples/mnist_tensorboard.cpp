// Trains the handbook's network on MNIST and writes what TensorBoard shows of it: the loss of every batch, histograms
// of the weights, the graph of a step, pictures of digits it takes for others, and a profile of twenty steps. usage:
// mnist_tensorboard [--log_dir=tensorboard] [--num_batches=1200]
// then: runnel events ls tensorboard; runnel profile tensorboard
#include <cstdio>
#include <exception>
#include <vector>

#include "examples/mnist_loader.h"
#include "examples/mnist_models.h"
#include "examples/options.h"
#include "runnel/summary/profiler.h"
#include "runnel/summary/summary.h"
#include "runnel/summary/trace.h"

using namespace runnel;

// Up to ten digits that the model takes for others.
struct Mistakes {
  std::vector<Tensor> images;
  std::string table = "| is | taken for |\n|---|---|\n";

  Mistakes(mnist::MLP& model, const mnist::MNISTLoader& data) {
    const Tensor taken_for = argmax(model.predict(data.test_data(slice(0, 1000)), {.verbose = 0}), -1);
    for (int64_t i = 0; i < taken_for.dim(0) && images.size() < 10; ++i) {
      const auto is = static_cast<int64_t>(data.test_label.data<int32_t>()[i]), taken = taken_for.data<int64_t>()[i];
      if (is == taken) continue;
      images.push_back(data.test_data[i]);
      table += "| " + std::to_string(is) + " | " + std::to_string(taken) + " |\n";
    }
  }
};

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"log_dir", "tensorboard"}, {"num_batches", "1200"}});
  const int num_batches = options.number("num_batches"), batch_size = 50;
  const int profiled_from = 10;  // the first steps trace and fill caches

  mnist::MLP model;
  mnist::MNISTLoader data_loader;
  keras::optimizers::Adam optimizer({.learning_rate = 0.001});
  const auto summary_writer = summary::create_file_writer(options.text("log_dir"));

  auto train_step = function([&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor y_pred = model(x);
    const Tensor loss = reduce_mean(keras::losses::sparse_categorical_crossentropy(y, y_pred));
    const auto grads = tape.gradient(loss, model.variables());
    optimizer.apply_gradients(zip(grads, model.variables()));
    return loss;
  });

  summary::trace_on();  // the graphs of the functions that run
  for (int batch_index = 0; batch_index < num_batches; ++batch_index) {
    if (batch_index == profiled_from) profiler::start(options.text("log_dir"));
    if (batch_index == profiled_from + 20) profiler::stop();
    const profiler::Trace step("train", batch_index);
    const auto [x, y] = data_loader.get_batch(batch_size);
    const Tensor loss = train_step(x, y);
    const auto scope = summary_writer.as_default(batch_index);  // the writer, and the step of what follows
    summary::scalar("loss", loss);
    if (batch_index == 0) summary::trace_export("train_step");
    if (batch_index % 100 != 0) continue;
    std::printf("batch %d: loss %f\n", batch_index, static_cast<double>(loss.item<float>()));
    for (const Variable& weight : model.variables()) summary::histogram(weight.name(), weight);
  }

  if (num_batches > profiled_from && num_batches <= profiled_from + 20) profiler::stop();

  const Mistakes mistakes(model, data_loader);
  const auto scope = summary_writer.as_default(num_batches);
  if (!mistakes.images.empty()) summary::image("mistakes", stack(mistakes.images), {}, 10);
  summary::text("mistakes_table", mistakes.table);
  summary_writer.close();
  std::printf("%zu mistakes among 1000 digits are shown; summaries are in %s\n", mistakes.images.size(),
              options.text("log_dir").c_str());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "mnist_tensorboard: %s\n", e.what());
  return 1;
}
