// Photographs through a pipeline: read, decoded, resized to 256x256, scaled to 0..1, batches of 32.
#include "bench/common.h"
#include "bench/photographs.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Calls = std::vector<std::function<void()>>;

Calls pipelines(const std::vector<int>& parallel) {
  const std::vector<std::string> files = bench::photographs();
  const Tensor paths = Tensor::of<Bytes>(std::vector<Bytes>(files.begin(), files.end()));
  const auto load = [](Tensor path) {
    const Tensor image = image::decode_jpeg(io::read_file(path), {.channels = 3});
    return image::resize(image, {bench::kSide, bench::kSide}) / 255.f;
  };
  Calls calls;
  for (const int p : parallel) {
    const auto d = data::from_tensor_slices(paths).map(load, p).batch(bench::kBatch).prefetch(data::AUTOTUNE);
    calls.emplace_back([d] {
      float sum = 0;
      for (const Tensor& batch : d) sum += batch.data<float>()[0];
      volatile float keep = sum;
      (void)keep;
    });
  }
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"autotune_jpeg", [](int) { return pipelines({data::AUTOTUNE}); }},
      {"autotune_jpeg_grid",
       [](int) {
         return pipelines({1, 2, 3, 4});
       }},
      {"autotune_jpeg_grid_worst", [](int) { return pipelines({1}); }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
