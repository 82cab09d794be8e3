// A variable in a graph: assigned by what a session runs.
#include <cstdio>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  compat::v1::disable_eager_execution();
  const Variable a = compat::v1::get_variable("a", {});
  const Tensor initializer = compat::v1::assign(a, 0.0);
  const Tensor plus_one = compat::v1::assign(a, a + 1.0);

  compat::v1::Session session;
  session.run(initializer);
  for (int i = 0; i < 5; ++i) {
    session.run(plus_one);
    std::printf("%.1f\n", session.run(a).item<float>());
  }
}
