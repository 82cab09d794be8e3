#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runnel/keras/activations.h"
#include "runnel/keras/config.h"
#include "runnel/keras/initializers.h"
#include "runnel/keras/policy.h"
#include "runnel/keras/serialization.h"
#include "runnel/tensor/tensor.h"

// What calls, weights and layers are told.
namespace runnel::keras {

// What goes with the inputs of a call. What is not given comes from the layer around this one.
struct CallArgs {
  std::optional<bool> training = {};       // false when nobody says
  Tensor mask = {};                        // bool [batch, time]: which steps count
  std::vector<Tensor> initial_state = {};  // of recurrent layers
  Tensor attention_mask = {};              // of attention layers: bool [batch, query, key]
  bool use_causal_mask = false;            // likewise: a position sees itself and those before it
};

struct WeightOptions {
  std::string name = {};
  Shape shape = {};
  Initializer initializer = {};  // glorot_uniform unless given; zeros for integers
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
  DType dtype = DType::invalid;  // that of the layer's weights
};

struct LayerOptions {
  std::string name = {};  // dense, dense_1, ... by the class when empty
  Policy dtype = {};
  bool trainable = true;
  PartialShape batch_input_shape = PartialShape::unknown();  // what the first layer of a Sequential is given
};

RUNNEL_API LayerOptions layer_options_from_config(const Config& config);

// What every layer can be told, at the end of its options. A macro, for designated initializers do not reach into the
// base of a struct. input_shape is that of one sample, batch_input_shape has the batch before it: given to the first
// layer of a Sequential, either builds the model.
#define RUNNEL_LAYER_OPTIONS                                                    \
  ::runnel::PartialShape input_shape = ::runnel::PartialShape::unknown();       \
  ::runnel::PartialShape batch_input_shape = ::runnel::PartialShape::unknown(); \
  std::string name = {};                                                        \
  ::runnel::keras::Policy dtype = {};                                           \
  bool trainable = true

// The entries that the configurations of all layers begin with.
template <class O>
constexpr auto layer_fields() {
  const auto all = field_list(field("name", &O::name, "dense, dense_1, ... by the class when empty"),
                              field("trainable", &O::trainable, "false: its weights are not among the trainable ones"),
                              field("dtype", &O::dtype,
                                    "of weights and computation: \"float32\", \"mixed_float16\", ...; the global "
                                    "policy when empty"));
  if constexpr (requires { &O::batch_input_shape; }) {
    return joined_fields(all, field_list(field("batch_input_shape", &O::batch_input_shape,
                                               "input_shape with the size of the batch before it")));
  } else {
    return all;
  }
}

}  // namespace runnel::keras
