// The handbook's quiz: when is a function traced, and when does its graph run? std::cout prints while tracing; print is
// an op.
#include <iostream>
#include <vector>

#include "runnel/runnel.h"

using namespace runnel;

int main() {
  auto f = function([](const auto& x) {
    std::cout << "The function is running in Python" << std::endl;
    print(x);
  });

  const Tensor a = constant(1, int32);
  f(a);
  const Tensor b = constant(2, int32);
  f(b);
  const Tensor b_ = Tensor::of(std::vector<int32_t>{2}, {});  // from an array of the program's own
  f(b_);
  const Tensor c = constant(0.1, float32);
  f(c);
  const Tensor d = constant(0.2, float32);
  f(d);
  f(1);  // plain numbers count by value
  f(2);
  f(1);
  f(0.1);
  f(0.2);
  f(0.1);
}
