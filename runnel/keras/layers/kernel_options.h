#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

// What layers with a kernel and a bias can be told of them. A macro, as RUNNEL_LAYER_OPTIONS.
#define RUNNEL_KERNEL_OPTIONS                                         \
  ::runnel::keras::Initializer kernel_initializer = "glorot_uniform"; \
  ::runnel::keras::Initializer bias_initializer = "zeros";            \
  ::runnel::keras::Regularizer kernel_regularizer = {};               \
  ::runnel::keras::Regularizer bias_regularizer = {};                 \
  ::runnel::keras::Regularizer activity_regularizer = {};             \
  ::runnel::keras::Constraint kernel_constraint = {};                 \
  ::runnel::keras::Constraint bias_constraint = {}

// The same as entries of a configuration.
template <class O>
constexpr auto kernel_fields() {
  return field_list(field("kernel_initializer", &O::kernel_initializer, "of the kernel"),
                    field("bias_initializer", &O::bias_initializer, "of the bias"),
                    field("kernel_regularizer", &O::kernel_regularizer, "a loss on the kernel"),
                    field("bias_regularizer", &O::bias_regularizer, "a loss on the bias"),
                    field("activity_regularizer", &O::activity_regularizer, "a loss on the output"),
                    field("kernel_constraint", &O::kernel_constraint, "what the kernel is brought to after a step"),
                    field("bias_constraint", &O::bias_constraint, "what the bias is brought to after a step"));
}
// What comes before them in most layers.
template <class O>
constexpr auto activation_fields() {
  return field_list(field("activation", &O::activation, "applied to the result; none: linear"),
                    field("use_bias", &O::use_bias, "with a bias"));
}

}  // namespace runnel::keras
