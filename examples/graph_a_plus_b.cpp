// A graph of placeholders, fed in a session.
#include <iostream>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  compat::v1::disable_eager_execution();
  const Tensor a = compat::v1::placeholder(int32);
  const Tensor b = compat::v1::placeholder(int32);
  const Tensor c = a + b;

  int a_value = 0;
  int b_value = 0;
  std::cout << "a = " << std::flush;
  std::cin >> a_value;
  std::cout << "b = " << std::flush;
  std::cin >> b_value;

  compat::v1::Session session;
  const Tensor sum = session.run(c, {{a, a_value}, {b, b_value}});
  std::cout << "a + b = " << sum.item<int32_t>() << '\n';
}
