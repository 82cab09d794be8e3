// Stated values and stated errors of every sample; and where the list of tests is made.
#include "tests/suite/values.h"

#include <gmock/gmock.h>

#include "runnel/base/error.h"
#include "runnel/ops/variable_slot.h"
#include "tests/suite/suite.h"

namespace runnel::test {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const OpDef* op : registry().all()) {
    for (size_t i = 0; i < op->samples.size(); ++i) cases.push_back({op, static_cast<int>(i)});
  }
  return cases;
}

std::vector<Declared> all_ops() {
  std::vector<Declared> ops;
  for (const OpDef* op : registry().all()) ops.push_back({op});
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, Suite, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.op->name + "_" + std::to_string(info.param.index); });
INSTANTIATE_TEST_SUITE_P(Ops, Declaration, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param.op->name; });

TEST_P(Suite, Values) { check_values(GetParam()); }
TEST_P(Suite, Dtypes) { check_dtypes(GetParam()); }
TEST_P(Suite, InferredShapes) { check_inferred_shapes(GetParam()); }
TEST_P(Suite, PartialShapes) { check_partial_shapes(GetParam()); }
TEST_P(Suite, Gradient) { check_gradient(GetParam()); }
TEST_P(Suite, SecondGradient) { check_second_gradient(GetParam()); }
TEST_P(Suite, ComplexGradient) { check_complex_gradient(GetParam()); }
TEST_P(Suite, GradientReadsWhatItSays) { check_gradient_reads(GetParam()); }
TEST_P(Suite, WrongDtype) { check_wrong_dtype(GetParam()); }
TEST_P(Suite, MissingAndSurplusInputs) { check_input_count(GetParam()); }
TEST_P(Suite, SameBitsWithOneAndTwoThreads) { check_same_bits(GetParam()); }
TEST_P(Suite, LargeElementwise) { check_large(GetParam()); }
TEST_P(Suite, EmptyElementwise) { check_empty(GetParam()); }
TEST_P(Suite, CompiledAsItsKernel) { check_lanes(GetParam()); }
TEST_P(Suite, AttributesRoundTrip) { check_attributes(GetParam()); }
TEST_P(Suite, TracedAsEager) { check_traced(GetParam()); }
TEST_P(Suite, TracedErrors) { check_traced_errors(GetParam()); }
TEST_P(Suite, TracedGradients) { check_traced_gradients(GetParam()); }

TEST_P(Declaration, IsComplete) { check_declaration(*GetParam().op); }
TEST_P(Declaration, HasAKernelForEveryDtypeOfItsSchema) { check_kernels(*GetParam().op); }
TEST_P(Declaration, SaysWhetherItHasADerivative) { check_derivative(*GetParam().op); }

void expect_stated_error(const Case& c, const std::vector<Tensor>& inputs) {
  const auto here = SourceSite::current();
  try {
    run(*c.op, inputs, c.attrs(), here);
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_THAT(text, ::testing::StartsWith("[" + c.op->name + "] "));
    EXPECT_THAT(text, ::testing::HasSubstr(c.sample().error));
    for (size_t i = 0; i < std::min<size_t>(inputs.size(), 8); ++i) {
      EXPECT_THAT(text, ::testing::HasSubstr(input_spec(*c.op, inputs, i).name + ": " + describe({inputs[i]})));
    }
    EXPECT_THAT(text, ::testing::EndsWith("(at " + std::string(here.file) + ":" + std::to_string(here.line) + ")"));
    return;
  }
  ADD_FAILURE() << c.name() << " gave a result; expected an Error with \"" << c.sample().error << '"';
}

}  // namespace

void check_values(const Case& c) {
  const Sample& s = c.sample();
  const std::vector<Tensor> inputs = c.inputs();
  if (!s.error.empty()) return expect_stated_error(c, inputs);

  const std::vector<Tensor> out = run(*c.op, inputs, c.attrs());
  if (!s.out.empty()) {
    ASSERT_EQ(out.size(), s.out.size()) << "outputs of " << c.name();
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(difference(out[i], s.out[i], s.tolerance, s.tolerance), "") << c.name() << ", output " << i;
    }
  }
  size_t variable = 0;
  for (const Tensor& t : inputs) {
    if (t.dtype() != DType::resource || variable >= s.after.size()) continue;
    EXPECT_EQ(difference(variable_slot(t).value, s.after[variable], s.tolerance, s.tolerance), "")
        << c.name() << ", variable " << variable << " after the call";
    ++variable;
  }
  EXPECT_EQ(variable, s.after.size()) << "variables among the inputs of " << c.name();
}

}  // namespace runnel::test
