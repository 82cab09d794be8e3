#pragma once

// A call of an op inside a graph, with more or less known of its inputs while it is traced.
#include <functional>
#include <vector>

#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "tests/suite/suite.h"

namespace runnel::test {

enum class Known { shapes, shapes_and_host_values, ranks, nothing };

// What `body` of the inputs gives, traced and run; resources are captured.
inline std::vector<Tensor> run_traced(const OpDef& op, const std::vector<Tensor>& inputs, Known known,
                                      const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& body) {
  Tracer tracer("suite");
  std::vector<Tensor> in;
  std::vector<Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    const bool host = input_spec(op, inputs, i).host_memory;
    if (t.dtype() == DType::resource || (host && known == Known::shapes_and_host_values)) {
      in.push_back(t);
      continue;
    }
    PartialShape shape = t.shape();
    if (known == Known::ranks) shape = PartialShape::unknown_dims(t.rank());
    if (known == Known::nothing) shape = PartialShape::unknown();
    in.push_back(tracer.add_parameter(t.dtype(), shape));
    values.push_back(t);
  }
  tracer.open();
  tracer.set_outputs(body(in));
  tracer.close();
  tracer.graph()->verify();
  const GraphFunction f(tracer.graph());
  values.insert(values.end(), tracer.captures().begin(), tracer.captures().end());
  if (!op.stateful) f.run(values);  // the second run finds the memory of the first
  return f.run(values);
}

}  // namespace runnel::test
