// The handbook's second quiz: a function changes a variable from outside, and gives its value back.
#include <iostream>

#include "runnel/runnel.h"

using namespace runnel;

int main() {
  const Variable a(0.0);

  auto g = function([&] {
    a.assign(a + 1.0);
    return a;
  });

  std::cout << g() << "\n";
  std::cout << g() << "\n";
  std::cout << g() << "\n";
}
