#include "runnel/keras/layers/register.h"

#include "runnel/keras/functional.h"
#include "runnel/keras/sequential.h"

namespace runnel::keras {

void register_layers() {
  register_layer<InputLayer>();
  // Models stand inside models as layers do.
  register_layer_factory("Sequential",
                         [](const Config& config) -> LayerPtr { return Sequential::from_config(config); });
  register_layer_factory("Functional", [](const Config& config) -> LayerPtr { return Model::from_config(config); });
  register_core_layers();
  register_image_layers();
  register_recurrent_layers();
}

}  // namespace runnel::keras
