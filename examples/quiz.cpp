// When is a function traced, and when does its graph run? The text is printed by C++, while tracing; print is an op.
#include <iostream>

#include "runnel/runnel.h"

int main() {
  using namespace runnel;
  auto f = function([](const auto& x) {
    std::cout << "The function is running in Python" << std::endl;
    print(x);
  });
  f(Tensor(1));  // int32
  f(Tensor(2));
  f(Tensor(2));
  f(Tensor(0.1f));  // float32
  f(Tensor(0.2f));
  f(1);  // plain numbers count by value
  f(2);
  f(1);
  f(0.1);
  f(0.2);
  f(0.1);
}
