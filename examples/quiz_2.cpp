// Variables are captured by reference: a counter.
#include <iostream>

#include "runnel/runnel.h"

int main() {
  using namespace runnel;
  const Variable a(0.0);
  auto f = function([&] {
    a.assign_add(1.0);
    return a.value();
  });
  for (int i = 0; i < 3; ++i) std::cout << f() << "\n";
}
