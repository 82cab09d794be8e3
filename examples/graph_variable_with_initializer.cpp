// The same as graph_variable, with an initializer that belongs to the variable.
#include <cstdio>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  compat::v1::disable_eager_execution();

  const Variable a = compat::v1::get_variable("a", {}, {.initializer = compat::v1::zeros_initializer()});
  const Tensor plus_one_op = compat::v1::assign(a, a + 1.0);

  compat::v1::Session sess;
  sess.run(compat::v1::global_variables_initializer());
  for (int i = 0; i < 5; ++i) {
    sess.run(plus_one_op);
    std::printf("%.1f\n", sess.run(a).item<float>());
  }
}
