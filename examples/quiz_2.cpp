// Variables are captured by reference: a counter. A function that returns a variable gives its value.
#include <iostream>

#include "runnel/runnel.h"

int main() {
  using namespace runnel;
  const Variable a(0.0);
  auto g = function([&] {
    a.assign(a + 1.0);
    return a;
  });
  std::cout << g() << "\n" << g() << "\n" << g() << "\n";
}
