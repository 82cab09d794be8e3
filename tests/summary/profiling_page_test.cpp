// The code of docs/profiling.md; scripts/doc_snippets compares the two.
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "runnel/runnel.h"
#include "runnel/summary/profiler.h"
#include "runnel/summary/summary.h"
#include "runnel/summary/trace.h"
#include "tests/summary/support.h"
#include "tests/support/profiles.h"

namespace runnel {
namespace {

class ProfilingPage : public testing::Test {
 protected:
  ProfilingPage() { std::filesystem::current_path(dir_.path()); }
  ~ProfilingPage() override { std::filesystem::current_path(before_); }
  bool has_profile() const { return std::filesystem::exists("logs/plugins/profile"); }

 private:
  test::TempDir dir_;
  std::filesystem::path before_ = std::filesystem::current_path();
};

namespace recorded_program {
int main() {
  const Variable w(random::normal({784, 10}));
  auto train_step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = reduce_mean(square(matmul(x, w)));
    w.assign_sub(tape.gradient(loss, w) * 0.01f);
    return loss;
  });
  auto batches = data::range(1000)
                     .map(
                         [](const Tensor&) {
                           return random::uniform({50, 784});
                         },
                         {.num_parallel_calls = 2})
                     .prefetch(2)
                     .make_iterator();
  train_step(*batches.next());  // traced before, or the profile shows that

  profiler::start("logs");
  for (int64_t step = 0; step < 20; ++step) {
    const profiler::Trace trace("train", step);
    const std::optional<Tensor> x = batches.next();
    train_step(*x);
  }
  profiler::stop();
  return 0;
}
}  // namespace recorded_program

TEST_F(ProfilingPage, Record) {
  EXPECT_EQ(recorded_program::main(), 0);
  EXPECT_TRUE(has_profile());
}

TEST_F(ProfilingPage, Mark) {
  const int64_t step_num = 3;
  const profile::Recording r = recorded([&] {
    const profiler::Trace step("train", step_num);
    {
      profiler::Trace part("augment");
      part.set_metadata("images", 50);
    }
  });
  EXPECT_THAT(names_of(r.events), testing::ElementsAre("train", "augment"));
  EXPECT_EQ(r.events[1].detail, "images=50");
}

TEST_F(ProfilingPage, Trace) {
  const auto writer = summary::create_file_writer("summaries");
  const Tensor x = ones({2, 2});
  auto train_step = function([](const Tensor& x) { return matmul(x, x); });
  {
    summary::trace_on(/*graph=*/true, /*profiler=*/true);
    train_step(x);
    const auto scope = writer.as_default();
    summary::trace_export("train_step", /*step=*/0, /*profiler_outdir=*/"logs");
  }
  writer.close();
  EXPECT_TRUE(has_profile());
  EXPECT_THAT(test::tags_of("summaries"), testing::Contains("train_step@0"));
}

}  // namespace
}  // namespace runnel
