// usage: write_summaries FOLDER    a run with one value or more of every kind; read.py has TensorBoard read it.
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "runnel/function/control_flow.h"
#include "runnel/function/function.h"
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

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
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
  f(Tensor(3.f));
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
