#include "runnel/keras/applications/image_model.h"

#include "runnel/base/format.h"
#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/pooling.h"

namespace runnel::keras::applications {

PartialShape image_shape(const PartialShape& given, bool include_top, const char* model) {
  if (!given.has_rank()) return include_top ? PartialShape{224, 224, 3} : PartialShape{kUnknownDim, kUnknownDim, 3};
  const auto too_small = [](int64_t size) { return size != kUnknownDim && size < 32; };
  if (given.rank() != 3 || given[2] == kUnknownDim || too_small(given[0]) || too_small(given[1])) {
    throw invalid_argument("[{}] input_shape must be {{height, width, channels}} of at least 32 x 32, got {}", model,
                           given.str());
  }
  return given;
}

Tensor image_model_end(const Tensor& features, const ImageModelEnd& end, const char* model) {
  if (end.include_top) {
    const Tensor x = GlobalAveragePooling2D({.name = end.average_name})(features);
    return Dense({.units = end.classes, .activation = end.classifier_activation, .name = "predictions"})(x);
  }
  if (end.pooling == "avg") return GlobalAveragePooling2D({.name = end.average_name})(features);
  if (end.pooling == "max") return GlobalMaxPooling2D({.name = end.max_name})(features);
  if (!end.pooling.empty()) {
    throw invalid_argument("[{}] pooling must be \"avg\", \"max\" or empty, got \"{}\"", model, end.pooling);
  }
  return features;
}

}  // namespace runnel::keras::applications
