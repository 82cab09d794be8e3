// The one list of op families.
#include "runnel/op/registry.h"
#include "runnel/ops/register.h"

namespace runnel {

void register_all_ops(Registry& r);

void register_all_ops(Registry& r) {
  register_argminmax(r);
  register_arithmetic(r);
  register_array_fill(r);
  register_array_gather(r);
  register_array_identity(r);
  register_array_join(r);
  register_array_pad(r);
  register_array_scatter(r);
  register_array_sequence(r);
  register_array_shape(r);
  register_array_slice(r);
  register_array_tile(r);
  register_array_transpose(r);
  register_bitwise(r);
  register_cast(r);
  register_compare(r);
  register_complex(r);
  register_division(r);
  register_elementary(r);
  register_logical(r);
  register_matmul(r);
  register_random(r);
  register_random_stateless(r);
  register_reduce(r);
  register_scatter_update(r);
  register_select(r);
  register_training(r);
  register_variable(r);
}

}  // namespace runnel
