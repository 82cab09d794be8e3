#include "runnel/keras/layers/conv.h"
#include "runnel/keras/layers/normalization.h"
#include "runnel/keras/layers/pooling.h"
#include "runnel/keras/layers/preprocessing.h"
#include "runnel/keras/layers/random_image_layers.h"
#include "runnel/keras/layers/register.h"
#include "runnel/keras/layers/resizing_layers.h"

namespace runnel::keras {
namespace {

template <class... Layers>
void register_image_classes() {
  (register_layer<Layers>(), ...);
}

}  // namespace

void register_image_layers() {
  register_image_classes<Conv1D, Conv2D, Conv3D, Conv2DTranspose, DepthwiseConv2D, SeparableConv2D>();
  register_image_classes<MaxPooling1D, MaxPooling2D, AveragePooling1D, AveragePooling2D, GlobalMaxPooling1D,
                         GlobalMaxPooling2D, GlobalAveragePooling1D, GlobalAveragePooling2D>();
  register_image_classes<ZeroPadding2D, Cropping2D, UpSampling2D, BatchNormalization, LayerNormalization>();
  register_image_classes<Rescaling, Resizing, Normalization, RandomFlip, RandomRotation, RandomZoom, RandomCrop>();
}

}  // namespace runnel::keras
