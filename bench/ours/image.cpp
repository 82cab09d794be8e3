// Photographs decoded and resized.
#include <atomic>
#include <memory>
#include <thread>

#include "bench/common.h"
#include "bench/photographs.h"
#include "runnel/runnel.h"

using namespace runnel;

namespace {

using bench::kSide;

std::vector<Tensor> contents() {
  std::vector<Tensor> all;
  for (const std::string& f : bench::photographs()) all.emplace_back(Bytes(bench::read_file(f)));
  return all;
}

std::vector<Bytes> paths() {
  std::vector<Bytes> all;
  for (const std::string& f : bench::photographs()) all.emplace_back(f);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"jpeg_pipeline",
       [](int threads) {
         const auto dataset = data::from_tensor_slices(Tensor::of<Bytes>(paths(), Shape{bench::kPhotographs}))
                                  .repeat(bench::kPasses)
                                  .map(
                                      [](const Tensor& path) {
                                        const Tensor photo = image::decode_jpeg(io::read_file(path), {.channels = 3});
                                        return image::resize(photo, {kSide, kSide}, {.scale = 1 / 255.0});
                                      },
                                      threads)
                                  .batch(bench::kBatch)
                                  .prefetch(1);
         return std::vector{std::function<void()>([dataset] {
           for (const Tensor& batch : dataset) {
             if (batch.dim(1) != kSide) std::abort();
           }
         })};
       }},
      {"jpeg_decode",
       [](int threads) {
         return std::vector{std::function<void()>([threads, all = contents()] {
           std::atomic<int> next{0};
           std::vector<std::thread> pool;
           for (int t = 0; t < threads; ++t) {
             pool.emplace_back([&] {
               const SerialScope serial;
               for (int i; (i = next++) < bench::kPhotographs;) image::decode_jpeg(all[static_cast<size_t>(i)]);
             });
           }
           for (auto& t : pool) t.join();
         })};
       }},
      {"image_resize",
       [](int) {
         const Tensor x = image::decode_jpeg(contents()[0]);
         return std::vector{std::function<void()>([x] { image::resize(x, {kSide, kSide}); })};
       }},
  };
  return bench::main_of(argc, argv, cases, [](int threads) { set_num_threads(threads); });
}
