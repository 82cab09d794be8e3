#pragma once

// Internal: the beginning and the end that image classifiers have in common.
#include <string>

#include "runnel/keras/activations.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras::applications {

// The shape of one image: the one given, else {224, 224, 3} for a classifier and any size otherwise. An Error for one
// that is no image.
PartialShape image_shape(const PartialShape& given, bool include_top, const char* model);

struct ImageModelEnd {
  bool include_top = true;
  std::string pooling;
  int64_t classes = 1000;
  Activation classifier_activation;
  std::string average_name, max_name;  // of the pooling layers; chosen when empty
};
// The classifier, the pooling that was asked for, or nothing more.
Tensor image_model_end(const Tensor& features, const ImageModelEnd& end, const char* model);

}  // namespace runnel::keras::applications
