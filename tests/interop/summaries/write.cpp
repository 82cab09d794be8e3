// usage: write_summaries FOLDER    a run with one value or more of every kind; read.py has TensorBoard read it.
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "runnel/compat/v1_summary.h"
#include "runnel/function/control_flow.h"
#include "runnel/function/function.h"
#include "runnel/graph/name_scope.h"
#include "runnel/keras/keras.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"
#include "runnel/summary/charts.h"
#include "runnel/summary/hparams.h"
#include "runnel/summary/summary.h"
#include "runnel/summary/trace.h"

using namespace runnel;
namespace v1 = compat::v1;

namespace {

// A FileWriter with what a session gave.
void write_v1(const std::string& folder) {
  const v1::Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = v1::placeholder(float32, {-1}, "x");
  {
    const auto inner = name_scope("inner");
    v1::summary::scalar("mean", reduce_mean(x));
  }
  v1::summary::histogram("spread", x);
  v1::summary::image("picture", cast(reshape(range(12), {1, 2, 2, 3}), DType::uint8), 1);
  v1::summary::audio("sound", zeros({1, 20}), 8000.f, 1);
  v1::summary::text("note", constant("hello"));
  v1::summary::tensor_summary("tensor", x, {.summary_description = "A *tensor*"});
  const Tensor merged = v1::summary::merge_all();
  v1::Session session(graph);
  v1::summary::FileWriter writer(folder, graph);
  for (int64_t step = 0; step < 3; ++step) {
    writer.add_summary(session.run(merged, {{x, {1.f, 2.f, static_cast<float>(3 * step)}}}), step);
  }
  writer.add_session_log({.status = v1::summary::SessionLog::Status::start}, 3);
  writer.add_simple_values({{"by_hand", 4.5f}}, 4);
  writer.close();
}

struct Noted : keras::Layer {
  using Layer::Layer;
  Tensor call(const Tensor& x, const keras::CallArgs&) override {
    summary::scalar("mean", reduce_mean(x));
    return x;
  }
};

// The TensorBoard callback, with a layer that writes a summary.
void write_keras(const std::string& folder) {
  keras::Sequential model(
      {std::make_shared<Noted>(keras::LayerOptions{.name = "noted", .batch_input_shape = PartialShape{-1, 3}}),
       keras::make<keras::layers::Dense>({.units = 2, .name = "dense"})},
      {.name = "model"});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.fit(ones({4, 3}), zeros({4, 2}),
            {.batch_size = 2,
             .epochs = 1,
             .verbose = 0,
             .callbacks = {keras::callbacks::TensorBoard({.log_dir = folder, .histogram_freq = 1, .update_freq = 1})}});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  write_v1(folder + "/v1");
  write_keras(folder + "/keras");
  {
    const auto writer = summary::create_file_writer(folder);
    const auto scope = writer.as_default();
    summary::hparams_config({{"units", summary::Discrete{4, 8}}, {"rate", summary::RealInterval{0.1, 0.5}}},
                            {{.tag = "loss", .display_name = "Loss"}}, 1000);
    summary::custom_scalars_layout({{"losses", {{"both", {"loss", "val_loss"}}}}});
  }
  const auto writer = summary::create_file_writer(folder + "/run");
  const auto scope = writer.as_default();
  summary::hparams({{"units", 8}, {"rate", 0.25}, {"optimizer", "adam"}, {"flag", true}}, "trial", 2000);
  for (int64_t step = 0; step < 100; ++step) {
    summary::scalar("loss", 1.0 / static_cast<double>(step + 1), step, step == 0 ? "The *loss*" : "");
  }
  const Tensor pixels = reshape(range(24), {2, 2, 2, 3});
  summary::image("picture", cast(pixels * 10, DType::uint8), 7);
  std::vector<float> wave;
  for (int i = 0; i < 100; ++i) wave.push_back(std::sin(static_cast<float>(i) * 0.2f));
  summary::audio("sound", reshape(Tensor::of<float>(wave), {1, 100, 1}), 8000, 8);
  summary::histogram("spread", {0.f, 1.f, 2.f, 3.f, 10.f}, 9, 5);
  summary::text("note", {{"a", "b"}, {"c", "d"}}, 10);
  summary::pr_curve("pr", {false, true, true, false}, {0.1f, 0.4f, 0.9f, 0.6f}, 11, 1, {.num_thresholds = 3});
  auto f = function([](const Tensor& x) {
    const auto inner = name_scope("inside");
    summary::scalar("traced", x, 12);
    return x * 2.f;
  });
  auto loop = function(
      [](const Tensor& x) {
        const auto inner = name_scope("product");
        const Tensor y = nn::relu(matmul(x, x) + 1.f);
        return while_loop([](const Tensor& z) { return reduce_sum(z) < 1000.f; },
                          [](const Tensor& z) { return z * 2.f; }, y);
      },
      {.name = "loop"});
  summary::trace_on(true, true, folder);
  f(Tensor(3.f));
  loop(ones({2, 2}));
  summary::trace_export("trace", 13);
  summary::graph(f.get_concrete_function(Tensor(3.f)).graph());
  summary::hparams_session_end(summary::HParamsStatus::success, 3000);
  writer.close();
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
