#include <ostream>

#include "runnel/op/gradient.h"

namespace runnel {

Gradient::Gradient(IndexedSlices slices) : slices_(std::make_shared<const IndexedSlices>(std::move(slices))) {}

// As Python prints what tf.GradientTape.gradient returns.
std::ostream& operator<<(std::ostream& out, const Gradient& gradient) {
  if (!gradient.defined()) return out << "None";
  if (!gradient.is_slices()) return out << gradient.dense();
  const IndexedSlices& slices = gradient.slices();
  out << "IndexedSlices(indices=" << slices.indices << ", values=" << slices.values;
  if (slices.dense_shape.defined()) out << ", dense_shape=" << slices.dense_shape;
  return out << ")";
}

}  // namespace runnel
