// The handbook's first graph: 1 + 1, described first and computed afterwards.
#include <iostream>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  compat::v1::disable_eager_execution();

  // A graph of three nodes.
  const Tensor a = constant(1);
  const Tensor b = constant(1);
  const Tensor c = a + b;
  // Nothing has been computed yet: c has no value.

  compat::v1::Session sess;
  const Tensor c_ = sess.run(c);
  std::cout << c_.item<int32_t>() << "\n";
}
