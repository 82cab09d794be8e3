// The suite itself: on ops that are wrong in one way the matching check fails.
#include <gtest/gtest-spi.h>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/op/builder.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/math.h"
#include "tests/suite/suite.h"

namespace runnel::test {
namespace {

struct FactorAttrs {
  double factor = 2;
  static constexpr auto fields() { return field_list(field("factor", &FactorAttrs::factor)); }
};

class SelfTest : public ::testing::Test {
 protected:
  Case first(const char* name) { return {&registry_.get(name), 0}; }
  Registry registry_;
};

TEST_F(SelfTest, ValuesAndErrors) {
  registry_.define("Wrong")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu([]<class T>(KernelContext& c) {
        if (c.in(0).rank() == 0) throw invalid_argument("no scalars");
        for (int64_t i = 0; i < c.in(0).num_elements(); ++i) c.out<T>()[i] = T(c.in<T>(0)[i] + 1);
      })
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{2.f, 3.5f}}})
      .sample({.in = {Tensor(1.f)}, .error = "scalars are fine"})
      .sample({.in = {Tensor{1.f}}, .error = "no scalars"});
  const OpDef& op = registry_.get("Wrong");
  EXPECT_NONFATAL_FAILURE(check_values({&op, 0}), "element 1 of float32[2] is 3, expected 3.5");
  EXPECT_NONFATAL_FAILURE(check_values({&op, 1}), "scalars are fine");
  EXPECT_NONFATAL_FAILURE(check_values({&op, 2}), "gave a result");
}

TEST_F(SelfTest, Dtypes) {
  registry_.define("WrongInHalf")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu([]<class T>(KernelContext& c) { c.out<T>()[0] = T(std::is_same_v<T, Half> ? 1.25f : 1.f); })
      .sample({.in = {Tensor(1.f)}, .out = {Tensor(1.f)}});
  EXPECT_NONFATAL_FAILURE(check_dtypes(first("WrongInHalf")), "T = float16");
  registry_.define("NoKernel")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .cpu(Types<float>{}, []<class T>(KernelContext& c) { c.out<T>()[0] = T(1); })
      .sample({.in = {Tensor(1.f)}, .out = {Tensor(1.f)}});
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(&failures);
    check_dtypes(first("NoKernel"));
    check_kernels(registry_.get("NoKernel"));
  }
  EXPECT_EQ(failures.size(), 6);  // three dtypes, twice
}

TEST_F(SelfTest, Shapes) {
  registry_.define("WrongShape")
      .in("x", floating)
      .out("y")
      .shape([](InferContext& c) { c.output(PartialShape{c.input(0).has_rank() ? c.input(0).rank() : 7}); })
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, c.in(0)); })
      .sample({.in = {Tensor{1.f, 2.f}}});
  EXPECT_NONFATAL_FAILURE(check_inferred_shapes(first("WrongShape")), "inferred [1] from float32[2], actual [2]");
  registry_.define("NeedsRank")
      .in("x", floating)
      .out("y")
      .shape([](InferContext& c) {
        if (!c.input(0).has_rank()) throw invalid_argument("what rank?");
        c.output(c.input(0));
      })
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, c.in(0)); })
      .sample({.in = {Tensor{1.f, 2.f}}});
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(&failures);
    check_partial_shapes(first("NeedsRank"));
  }
  ASSERT_GT(failures.size(), 0);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "what rank?", failures.GetTestPartResult(0).message());
}

TEST_F(SelfTest, Gradients) {
  auto square = [](OpBuilder<NoAttrs, Types<>> b) {
    return b.in("x", floating_or_complex)
        .out("y")
        .shape(like<0>)
        .cpu([]<class T>(KernelContext& c) {
          for (int64_t i = 0; i < c.in(0).num_elements(); ++i) c.out<T>()[i] = T(c.in<T>(0)[i] * c.in<T>(0)[i]);
        })
        .sample({.in = {Tensor{1.5f, -2.f}}, .out = {Tensor{2.25f, 4.f}}});
  };
  square(registry_.define("Right")).grad([](const GradCtx& g) { return 2 * conj(g.x()) * g.dy(); });
  square(registry_.define("Wrong")).grad([](const GradCtx& g) { return 2.1 * g.x() * g.dy(); });
  square(registry_.define("Unconjugated")).grad([](const GradCtx& g) { return 2 * g.x() * g.dy(); });
  // Its gradient is right but made outside the tape, so that it cannot be differentiated again.
  square(registry_.define("Hidden")).grad([](const GradCtx& g) {
    const Unrecorded unrecorded;
    return 2 * conj(g.x()) * g.dy();
  });
  check_gradient(first("Right"));
  check_second_gradient(first("Right"));
  check_complex_gradient(first("Right"));
  EXPECT_NONFATAL_FAILURE(check_gradient(first("Wrong")), "by differences");
  check_gradient(first("Unconjugated"));
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(&failures);
    check_complex_gradient(first("Unconjugated"));
  }
  EXPECT_GT(failures.size(), 0);
  check_gradient(first("Hidden"));
  ::testing::TestPartResultArray hidden;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(&hidden);
    check_second_gradient(first("Hidden"));
  }
  EXPECT_EQ(hidden.size(), 2);  // by x and by dy
}

TEST_F(SelfTest, Threads) {
  registry_.define("CountsThreads")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .elementwise_op()
      .cpu([]<class T>(KernelContext& c) {
        for (int64_t i = 0; i < c.in(0).num_elements(); ++i) c.out<T>()[i] = T(static_cast<float>(num_threads()));
      })
      .sample({.in = {Tensor{1.f, 2.f}}});
  EXPECT_NONFATAL_FAILURE(check_same_bits(first("CountsThreads")), "differs between one and two threads");
  registry_.define("WrongWhenLarge")
      .in("x", floating)
      .out("y")
      .shape(like<0>)
      .elementwise_op()
      .cpu([]<class T>(KernelContext& c) {
        const int64_t n = c.in(0).num_elements();
        for (int64_t i = 0; i < n; ++i) c.out<T>()[i] = T(i > 100 ? 1.f : 0.f);
      })
      .sample({.in = {Tensor{1.f, 2.f}}});
  EXPECT_NONFATAL_FAILURE(check_large(first("WrongWhenLarge")), "not what it gives for few");
  registry_.define("NeedsElements")
      .in("x", floating)
      .out("y")
      .shape([](InferContext& c) { c.output(PartialShape{1}); })
      .elementwise_op()
      .cpu([](KernelContext&) {})
      .sample({.in = {Tensor{1.f}}});
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(&failures);
    check_empty(first("NeedsElements"));
  }
  EXPECT_EQ(failures.size(), 2);
}

TEST_F(SelfTest, Declarations) {
  registry_.define<FactorAttrs>("Silent").in("x", floating).out("").shape(like<0>).cpu([](KernelContext&) {});
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(&failures);
    check_declaration(registry_.get("Silent"));
    check_derivative(registry_.get("Silent"));
  }
  EXPECT_EQ(failures.size(), 5);  // no doc (twice), an output without a name, no sample, no word on its gradient
}

}  // namespace
}  // namespace runnel::test
