// Every sample once more inside a graph: the same bits as eagerly, whatever is known of shapes and values while
// tracing.
#include "runnel/base/error.h"
#include "runnel/ops/variable_slot.h"
#include "tests/suite/suite.h"
#include "tests/suite/tracing.h"
#include "tests/suite/values.h"

namespace runnel::test {
void check_traced(const Case& c) {
  if (!c.sample().error.empty()) return;
  if (c.op->stateful && !c.sample().make) return;  // draws other numbers each time
  for (const Known known : {Known::shapes, Known::shapes_and_host_values, Known::ranks, Known::nothing}) {
    const std::vector<Tensor> first = c.inputs();
    const std::vector<Tensor> second = c.inputs();
    try {
      const std::vector<Tensor> eager = run(*c.op, first, c.attrs());
      const std::vector<Tensor> traced =
          run_traced(*c.op, second, known, [&](const std::vector<Tensor>& in) { return run(*c.op, in, c.attrs()); });
      ASSERT_EQ(eager.size(), traced.size());
      // The memory of graphs is planned by this promise.
      for (const Tensor& out : eager) {
        for (const Tensor& in : first) {
          EXPECT_TRUE(c.op->forwards || c.op->stateful || out.impl()->buffer != in.impl()->buffer)
              << c.name() << " hands on an input: it must be declared with .forwards()";
        }
      }
      for (size_t i = 0; i < eager.size(); ++i) {
        EXPECT_TRUE(same_bits(eager[i], traced[i]))
            << c.name() << ", output " << i << " differs in a graph: " << difference(traced[i], eager[i], 0, 0);
      }
    } catch (const Error& e) {
      ADD_FAILURE() << c.name() << " in a graph, with known " << static_cast<int>(known) << ": " << e.what();
    }
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i].dtype() != DType::resource) continue;
      const auto* slot = dynamic_cast<VariableSlot*>(first[i].data<ResourceHandle>()->object.get());
      if (!slot || !slot->value.defined()) continue;
      EXPECT_TRUE(same_bits(slot->value, variable_slot(second[i]).value)) << c.name() << " leaves another state";
    }
  }
}

}  // namespace runnel::test
