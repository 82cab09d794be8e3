#include "runnel/keras/layers/register.h"

namespace runnel::keras {

void register_layers() {
  register_core_layers();
  register_image_layers();
  register_recurrent_layers();
}

}  // namespace runnel::keras
