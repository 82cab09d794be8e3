// The one list of op families.
#include "runnel/op/registry.h"
#include "runnel/ops/register.h"

namespace runnel {

void register_all_ops(Registry& r);

void register_all_ops(Registry& r) {
  register_argminmax(r);
  register_arithmetic(r);
  register_array_shape(r);
  register_matmul(r);
  register_reduce(r);
  register_array_join(r);
  register_variable(r);
}

}  // namespace runnel
