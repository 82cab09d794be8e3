#include "runnel/keras/layer_of.h"
#include "runnel/keras/layers/activation_layers.h"
#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/merge.h"
#include "runnel/keras/layers/register.h"
#include "runnel/keras/layers/regularization.h"
#include "runnel/keras/layers/reshaping.h"

namespace runnel::keras {

void register_core_layers() {
  register_layer<Dense>();

  register_layer<Flatten>();
  register_layer<Reshape>();
  register_layer<Permute>();
  register_layer<RepeatVector>();

  register_layer<ActivationLayer>();
  register_layer<Softmax>();
  register_layer<ReLU>();
  register_layer<LeakyReLU>();
  register_layer<PReLU>();
  register_layer<ELU>();

  register_layer<Dropout>();
  register_layer<SpatialDropout2D>();
  register_layer<GaussianNoise>();

  register_layer<Add>();
  register_layer<Subtract>();
  register_layer<Multiply>();
  register_layer<Average>();
  register_layer<Maximum>();
  register_layer<Minimum>();
  register_layer<Concatenate>();
  register_layer<Dot>();
}

}  // namespace runnel::keras
