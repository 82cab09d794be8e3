// Summaries of callables in pipelines: the writer is that of the time when the stage was made, as in TensorFlow 2.15,
// which traces them then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "runnel/data/dataset.h"
#include "runnel/graph/name_scope.h"
#include "runnel/runnel.h"
#include "runnel/summary/summary.h"
#include "tests/summary/support.h"
#include "tests/support/expect_error.h"

namespace runnel::summary {
namespace {

using test::tags_of;
using test::TempDir;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Tensor noted(const Tensor& v) {
  scalar("m", cast(v, DType::float32));
  return v;
}

template <class D>
void read_all(D dataset) {
  for (const auto& element : dataset) static_cast<void>(element);
}

class SummariesOfPipelines : public testing::Test {
 protected:
  // What is written while `body` runs with a default writer and step 7, and what `after` adds without one.
  template <class F, class G>
  std::vector<std::string> written(const F& body, const G& after) {
    TempDir dir;
    const SummaryWriter writer = create_file_writer(dir.path());
    {
      const auto scope = writer.as_default(7);
      body();
    }
    after();
    writer.close();
    return tags_of(dir.path());
  }
  template <class F>
  std::vector<std::string> written(const F& body) {
    return written(body, [] {});
  }
};

TEST_F(SummariesOfPipelines, AreThoseOfTheTimeWhenTheStageWasMade) {
  const auto three = [] {
    const auto scope = name_scope("ns");  // scopes around are no part of it
    return data::range(3).map(noted);
  };
  EXPECT_THAT(written([&] { read_all(three()); }), ElementsAre("m@7", "m@7", "m@7"));
  const auto elsewhere = three();
  EXPECT_THAT(written([&] { read_all(elsewhere); }), IsEmpty());
  std::optional<decltype(three())> kept;
  EXPECT_THAT(written([&] { kept = three(); }, [&] { read_all(*kept); }), ElementsAre("m@7", "m@7", "m@7"));
  test::expect_error([&] { read_all(*kept); }, Code::failed_precondition, "is closed");
}

TEST_F(SummariesOfPipelines, EveryStageAndThread) {
  EXPECT_THAT(written([] {
                read_all(data::range(4)
                             .filter([](const Tensor& v) {
                               scalar("f", 1.f, v);
                               return v.item<int64_t>() > 1;
                             })
                             .batch(2)
                             .map([](const Tensor& v) {
                               histogram("h", v, v[0]);
                               return v;
                             }));
              }),
              ElementsAre("f@0", "f@1", "f@2", "f@3", "h@2"));
  EXPECT_THAT(written([] {
                read_all(data::range(4).map(
                    [](const Tensor& v) {
                      scalar("p", 1.f, v);
                      return v;
                    },
                    {.num_parallel_calls = 2}));
              }),
              UnorderedElementsAre("p@0", "p@1", "p@2", "p@3"));
  EXPECT_THAT(written([] {
                read_all(data::range(2).flat_map([](const Tensor& v) {
                  scalar("outer", 1.f, v);
                  return data::range(2).map([](const Tensor& w) {
                    scalar("inner", 1.f, w);
                    return w;
                  });
                }));
              }),
              ElementsAre("outer@0", "inner@0", "inner@1", "outer@1", "inner@0", "inner@1"));
}

TEST_F(SummariesOfPipelines, TracedFunctions) {
  auto f = function([](const Tensor& v) {
    scalar("traced", cast(v, DType::float32), v);
    return v + int64_t{1};
  });
  EXPECT_THAT(written([&] { read_all(data::range(3).map(f).batch(2)); }),
              ElementsAre("traced@0", "traced@1", "traced@2"));
}

TEST_F(SummariesOfPipelines, StepsAndConditions) {
  const Variable step(int64_t{5});
  EXPECT_THAT(written([&] {
                experimental::set_step(step);
                auto it = data::range(2).map(noted).make_iterator();
                it.next();
                step.assign(int64_t{6});
                it.next();
                experimental::set_step({});
              }),
              ElementsAre("m@5", "m@6"));
  int asked = 0;
  EXPECT_THAT(written([&] {
                const auto no = record_if([&] {
                  ++asked;
                  return Tensor(false);
                });
                read_all(data::range(3).map(noted));
              }),
              IsEmpty());
  EXPECT_EQ(asked, 1);  // when the stage was made
  // A step that a callable sets is its own.
  EXPECT_THAT(written([&] {
                read_all(data::range(2).map([](const Tensor& v) {
                  scalar("before", 1.f);
                  experimental::set_step(v);
                  scalar("after", 1.f);
                  return v;
                }));
                scalar("outside", 1.f);
              }),
              ElementsAre("before@7", "after@0", "before@7", "after@1", "outside@7"));
}

// Generators run as code of the program, which knows no writer, as in TensorFlow.
TEST_F(SummariesOfPipelines, Generators) {
  EXPECT_THAT(written([] {
                read_all(data::from_generator([] {
                  return [at = 0]() mutable -> std::optional<Tensor> {
                    scalar("gen", 1.f, 1);
                    if (++at > 2) return std::nullopt;
                    return Tensor(at);
                  };
                }));
              }),
              IsEmpty());
}

}  // namespace
}  // namespace runnel::summary
