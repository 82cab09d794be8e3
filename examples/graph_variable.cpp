// The handbook's variable in a graph: what a session runs assigns it.
#include <cstdio>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  compat::v1::disable_eager_execution();

  const Variable a = compat::v1::get_variable("a", {});
  const Tensor initializer = compat::v1::assign(a, 0.0);
  const Tensor plus_one_op = compat::v1::assign(a, a + 1.0);

  compat::v1::Session sess;
  sess.run(initializer);
  for (int i = 0; i < 5; ++i) {
    sess.run(plus_one_op);
    std::printf("%.1f\n", sess.run(a).item<float>());
  }
}
