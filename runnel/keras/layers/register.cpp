#include "runnel/keras/layers/register.h"

#include "runnel/keras/functional.h"
#include "runnel/keras/sequential.h"

namespace runnel::keras {

void register_layers() {
  register_layer<InputLayer>();
  // Models stand inside models as layers do.
  utils::register_keras_serializable<Sequential>("");
  utils::register_keras_serializable<Model>("", "Functional");
  register_core_layers();
  register_image_layers();
  register_recurrent_layers();
}

}  // namespace runnel::keras
