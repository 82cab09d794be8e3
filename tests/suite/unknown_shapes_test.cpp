// Samples inside a graph for which sizes, ranks and values are unknown while it is traced: mistakes are found when it
// runs, and derivatives are the ones that known shapes give.
#include <algorithm>

#include "runnel/autodiff/tape.h"
#include "runnel/base/error.h"
#include "tests/suite/suite.h"
#include "tests/suite/tracing.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

constexpr Known kAllKnown[] = {Known::shapes, Known::shapes_and_host_values, Known::ranks, Known::nothing};

bool has_derivative(DType t) { return is_float(t) || is_complex(t); }

// The gradients of the sum of squares of the outputs, those that there are.
std::vector<Tensor> gradients_of_squares(const Case& c, const std::vector<Tensor>& inputs,
                                         const std::vector<size_t>& sources) {
  GradientTape tape;
  std::vector<GradSource> by;
  for (const size_t s : sources) {
    tape.watch(inputs[s]);
    by.emplace_back(inputs[s]);
  }
  std::vector<Tensor> targets;
  std::vector<Tensor> dy;
  for (const Tensor& y : run(*c.op, inputs, c.attrs())) {
    if (!has_derivative(y.dtype())) continue;
    targets.push_back(y);
    dy.push_back(y);
  }
  std::vector<Tensor> all;
  if (targets.empty()) return all;
  for (const Gradient& g : tape.gradient(targets, by, dy)) {
    if (g.defined()) all.push_back(g.value());
  }
  return all;
}

}  // namespace

void check_traced_errors(const Case& c) {
  if (c.sample().error.empty()) return;
  for (const Known known : kAllKnown) {
    try {
      run_traced(*c.op, c.inputs(), known, [&](const std::vector<Tensor>& in) { return run(*c.op, in, c.attrs()); });
      ADD_FAILURE() << c.name() << " in a graph, with known " << static_cast<int>(known) << ": no error; expected \""
                    << c.sample().error << '"';
    } catch (const Error& e) {
      // Found while tracing, it may speak of sizes that are not known yet.
      const std::string text = e.what();
      EXPECT_TRUE(text.find(c.sample().error) != std::string::npos || text.find("?") != std::string::npos)
          << c.name() << ", with known " << static_cast<int>(known) << ": " << text << "; expected \""
          << c.sample().error << '"';
      EXPECT_NE(text.find(c.op->name), std::string::npos) << text;
      EXPECT_NE(e.code(), Code::internal) << text;
    }
  }
}

void check_traced_gradients(const Case& c) {
  if (!c.sample().error.empty() || !c.op->grad || c.op->stateful || has_handles(*c.op)) return;
  std::vector<Tensor> inputs = c.inputs();
  // One tensor that is two inputs would have the sum of their gradients.
  for (Tensor& t : inputs) t = t.with_shape(t.shape());
  std::vector<size_t> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool fixed = std::ranges::count(c.sample().fixed, static_cast<int>(i)) > 0;
    if (has_derivative(inputs[i].dtype()) && !input_spec(*c.op, inputs, i).host_memory && !fixed) sources.push_back(i);
  }
  if (sources.empty()) return;
  const std::vector<Tensor> eager = gradients_of_squares(c, inputs, sources);
  for (const Known known : kAllKnown) {
    try {
      const std::vector<Tensor> traced = run_traced(
          *c.op, inputs, known, [&](const std::vector<Tensor>& in) { return gradients_of_squares(c, in, sources); });
      ASSERT_EQ(traced.size(), eager.size()) << c.name();
      for (size_t i = 0; i < eager.size(); ++i) {
        EXPECT_EQ(difference(traced[i], eager[i], 1e-4, 1e-5), "")
            << c.name() << ", gradient " << i << " in a graph, with known " << static_cast<int>(known);
      }
    } catch (const Error& e) {
      // Some gradients need sizes or ranks, and say so.
      const std::string text = e.what();
      const bool says_so = text.find("known") != std::string::npos || text.find("being built") != std::string::npos;
      EXPECT_TRUE(says_so && known != Known::shapes_and_host_values)
          << c.name() << ": its gradient in a graph, with known " << static_cast<int>(known) << ": " << text;
    }
  }
}

}  // namespace runnel::test
