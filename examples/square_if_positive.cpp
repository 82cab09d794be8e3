// The handbook's example of control flow: a branch on a tensor's value is a node of the graph, which is shown at last.
#include <iostream>

#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  auto square_if_positive = function(
      [](Tensor x) {
        // clang-format off
        IF (x > 0) {
          x = x * x;
        } else {
          x = 0;
        }
        // clang-format on
        return x;
      },
      {.name = "square_if_positive"});

  const Tensor a = constant(1);
  const Tensor b = constant(-1);
  std::cout << square_if_positive(a) << " " << square_if_positive(b) << "\n";
  std::cout << square_if_positive.get_concrete_function(a).to_text();
}
