#include <ostream>

#include "runnel/base/format.h"
#include "runnel/op/gradient.h"

namespace runnel {
namespace {

class NoGradient : public Symbol {
 public:
  explicit NoGradient(std::string source) : source_(std::move(source)) {}
  const PartialShape& shape() const override { return shape_; }
  std::string described() const override {
    return fmt::format("there is no gradient by {}: the target does not depend on it", source_);
  }

 private:
  PartialShape shape_ = PartialShape::unknown();
  std::string source_;
};

}  // namespace

Gradient Gradient::none_of(std::string source) {
  return Tensor(make_ref<TensorImpl>(DType::invalid, std::make_shared<NoGradient>(std::move(source))));
}

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
