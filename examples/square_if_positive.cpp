// A branch on a tensor's value is a node of the graph.
#include <iostream>

#include "runnel/function/traced_blocks.h"
#include "runnel/runnel.h"

int main() {
  using namespace runnel;
  auto square_if_positive = function(
      [](Tensor x) {
        IF(x > 0) { x = x * x; }
        else {
          x = zeros_like(x);
        }
        return x;
      },
      {.name = "square_if_positive"});
  const Tensor a(1);
  const Tensor b(-1);
  std::cout << square_if_positive(a) << " " << square_if_positive(b) << "\n";
  std::cout << square_if_positive.get_concrete_function(a).to_text();
}
