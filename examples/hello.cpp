#include <iostream>

#include "runnel/runnel.h"

int main() {
  using namespace runnel;
  Tensor x = {{1.f, 2.f}, {3.f, 4.f}};
  Variable w(Tensor{{1.f}, {2.f}});
  GradientTape tape;
  Tensor y = reduce_sum(matmul(x, w));
  std::cout << y << "\n" << tape.gradient(y, w) << "\n";
}
