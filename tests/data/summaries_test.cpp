// Summaries and names around a pipeline do not reach into it, whichever thread makes an element.
#include <thread>

#include "runnel/summary/summary.h"
#include "tests/data/helpers.h"
#include "tests/summary/support.h"

namespace runnel::data {
namespace {

TEST(SummariesOfPipelines, NothingDependsOnTheThread) {
  test::TempDir dir;
  const summary::SummaryWriter writer = summary::create_file_writer(dir.path());
  for (const int parallel : {1, 2}) {
    const auto numbers = stream(100).map(
        [](const Tensor& x) {
          EXPECT_FALSE(summary::has_default_writer());
          EXPECT_EQ(current_name_scope(), "");
          summary::scalar("inside", 1.f, 1);
          return x;
        },
        {.num_parallel_calls = parallel});
    const auto scope = writer.as_default(parallel);
    const auto names = name_scope("around");
    EXPECT_EQ(ints(numbers), iota(100));
    summary::scalar("behind", 1.f);
  }
  writer.close();
  EXPECT_THAT(test::tags_of(dir.path()), ElementsAre("around/behind@1", "around/behind@2"));
}

TEST(SummariesOfPipelines, TheThreadKeepsItsDefaults) {
  test::TempDir dir;
  const summary::SummaryWriter writer = summary::create_file_writer(dir.path());
  std::thread([&] {  // defaults without an end
    writer.set_as_default(5);
    const auto numbers = stream(3).map([](const Tensor& x) {
      const auto none = summary::record_if(false);
      summary::experimental::set_step(9);
      return x;
    });
    EXPECT_EQ(ints(numbers), iota(3));
    summary::scalar("behind", 1.f);
  })
      .join();
  writer.close();
  EXPECT_THAT(test::tags_of(dir.path()), ElementsAre("behind@5"));
}

}  // namespace
}  // namespace runnel::data
