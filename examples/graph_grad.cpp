// The handbook's derivative in a graph: of x^2 at 3.
#include <cstdio>

#include "runnel/compat/v1.h"
#include "runnel/runnel.h"

using namespace runnel;

int main() {
  compat::v1::disable_eager_execution();

  const Variable x = compat::v1::get_variable("x", {}, {.initializer = compat::v1::constant_initializer(3.)});
  const Tensor y = square(x);
  const auto y_grad = compat::v1::gradients(y, {x});

  compat::v1::Session sess;
  sess.run(compat::v1::global_variables_initializer());
  const auto [y_, y_grad_] = sess.run({y, y_grad[0]});
  std::printf("%.1f [%.1f]\n", y_.item<float>(), y_grad_.item<float>());
}
