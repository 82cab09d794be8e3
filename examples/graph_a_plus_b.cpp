// A graph of placeholders, fed in a session.
#include <cstdlib>
#include <iostream>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

// An integer from the terminal.
int ask(const char* name) {
  int value = 0;
  std::cout << name << " = " << std::flush;
  if (!(std::cin >> value)) {
    std::cerr << "\ngraph_a_plus_b: " << name << " must be an integer\n";
    std::exit(1);
  }
  return value;
}

int main() {
  compat::v1::disable_eager_execution();
  const Tensor a = compat::v1::placeholder(int32);
  const Tensor b = compat::v1::placeholder(int32);
  const Tensor c = a + b;

  const int a_value = ask("a");
  const int b_value = ask("b");

  compat::v1::Session session;
  const Tensor sum = session.run(c, {{a, a_value}, {b, b_value}});
  std::cout << "a + b = " << sum.item<int32_t>() << '\n';
}
