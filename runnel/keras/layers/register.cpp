#include "runnel/keras/layers/register.h"

namespace runnel::keras {

void register_layers() {}

}  // namespace runnel::keras
