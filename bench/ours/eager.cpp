// Small eager ops: what one call costs, recorded or not, and there and back.
#include "bench/common.h"
#include "runnel/base/profile.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;

Tensor values(unsigned seed) {
  std::vector<float> v(10);
  bench::fill(v.data(), v.size(), seed);
  return Tensor::of<float>(v);
}

// The seconds of one addition while a profile is recorded, or is not. What reading it takes afterwards does not count.
double profiled_add(bool profiled) {
  constexpr int kAdds = 100'000, kRounds = 15;
  const Tensor x = values(1), y = values(2);
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    if (profiled) profile::start();
    const double begin = bench::seconds();
    for (int i = 0; i < kAdds; ++i) add(x, y);
    times.push_back((bench::seconds() - begin) / kAdds);
    if (profiled) profile::stop();
  }
  return bench::median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const Tensor x = values(1);
  const Tensor y = values(2);
  const std::vector<bench::Case> cases = {
      {"eager_add10",
       [&](int) -> std::vector<std::function<void()>> {
         return {[&] {
           for (int i = 0; i < 100; ++i) add(x, y);
         }};
       }},
      {"eager_add10_recording",
       [&](int) -> std::vector<std::function<void()>> {
         return {[&] {
           GradientTape tape;
           tape.watch(x);
           for (int i = 0; i < 100; ++i) add(x, y);
         }};
       }},
      {"eager_chain_backward",
       [&](int) -> std::vector<std::function<void()>> {
         return {[&] {
           GradientTape tape;
           tape.watch(x);
           Tensor z = x;
           for (int i = 0; i < 50; ++i) z = multiply(add(z, y), y);
           tape.gradient(z, x);
         }};
       }},
      {.name = "eager_add10_profiled", .make = nullptr, .number = [] { return profiled_add(true); }},
      {.name = "eager_add10_profiled_off", .make = nullptr, .number = [] { return profiled_add(false); }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
