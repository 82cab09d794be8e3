// The handbook's graph with placeholders, whose values a session is given.
#include <cstdlib>
#include <iostream>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

// An integer from the terminal.
int input(const char* prompt) {
  int value = 0;
  std::cout << prompt << std::flush;
  if (!(std::cin >> value)) {
    std::cerr << "\ngraph_a_plus_b: an integer is needed\n";
    std::exit(1);
  }
  return value;
}

int main() {
  compat::v1::disable_eager_execution();

  const Tensor a = compat::v1::placeholder(int32);
  const Tensor b = compat::v1::placeholder(int32);
  const Tensor c = a + b;

  const int a_ = input("a = ");
  const int b_ = input("b = ");

  compat::v1::Session sess;
  const Tensor c_ = sess.run(c, {{a, a_}, {b, b_}});
  std::cout << "a + b = " << c_.item<int32_t>() << "\n";
}
