#pragma once

#include "runnel/keras/model.h"

namespace runnel::keras::applications {

struct ResNet50Options {
  bool include_top = true;  // the classifier
  // Of one image; {224, 224, 3} unless given, of any size without the top.
  PartialShape input_shape = PartialShape::unknown();
  std::string pooling = {};  // without the top: "avg" or "max" over the image, or none
  int64_t classes = 1000;
  Activation classifier_activation = "softmax";
};
// ResNet50 (He et al. 2015) with Keras's layers and names; its weights are those of the initializers.
RUNNEL_API Shared<Model> resnet50(const ResNet50Options& options = {});

}  // namespace runnel::keras::applications
