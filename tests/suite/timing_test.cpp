// main of the suite. `suite_test --time` (or RUNNEL_SUITE_TIME=1) times the first sample of every op instead.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runnel/base/error.h"
#include "tests/suite/suite.h"

namespace runnel::test {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double nanoseconds_per_call(const Case& c) {
  const std::vector<Tensor> inputs = c.inputs();
  int64_t calls = 1;
  for (;; calls *= 4) {
    const double start = seconds_now();
    for (int64_t i = 0; i < calls; ++i) run(*c.op, inputs, c.attrs());
    const double taken = seconds_now() - start;
    if (taken > 0.005) return taken * 1e9 / static_cast<double>(calls);
  }
}

int print_times() {
  for (const OpDef* op : registry().all()) {
    for (size_t i = 0; i < op->samples.size(); ++i) {
      const Case c{op, static_cast<int>(i)};
      if (!c.sample().error.empty()) continue;
      try {
        std::printf("%-40s %10.0f ns  (%s)\n", op->name.c_str(), nanoseconds_per_call(c), describe(c.inputs()).c_str());
      } catch (const Error& e) {
        std::printf("%-40s failed: %s\n", op->name.c_str(), e.what());
      }
      break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace runnel::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* wish = std::getenv("RUNNEL_SUITE_TIME");
  bool timing = wish != nullptr && std::strcmp(wish, "0") != 0;
  for (int i = 1; i < argc; ++i) timing = timing || std::strcmp(argv[i], "--time") == 0;
  return timing ? runnel::test::print_times() : RUN_ALL_TESTS();
}
