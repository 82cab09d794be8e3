#include "runnel/keras/weights_files.h"

#include <memory>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/ops/math.h"

namespace runnel::keras {

void set_all(const WeightValues& values) {
  for (const auto& [variable, value] : values) variable.assign(value);
}

Tensor tensor_of(io::NpyArray array) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(array.data));
  return Tensor::wrap(dtype_from_name(array.dtype), Shape(array.shape), owner->data(), owner);
}

Tensor value_for(const Variable& variable, const io::Hdf5Reader& file, const std::string& dataset) {
  const Shape shape(file.info(dataset).shape);  // before memory is taken for it
  if (shape != variable.shape()) {
    throw invalid_argument("weight '{}' has shape {}, what is saved as '{}' in {} has {}", variable.name(),
                           variable.shape().str(), dataset, file.path(), shape.str());
  }
  const Tensor value = tensor_of(file.read(dataset));
  return value.dtype() == variable.dtype() ? value : cast(value, variable.dtype());
}

void write_value(io::Hdf5Writer& file, const std::string& dataset, const Variable& variable) {
  const Tensor value = variable.value().to_host();
  const Shape& shape = value.shape();
  file.write(dataset, {dtype_name(value.dtype()),
                       {shape.begin(), shape.end()},
                       ByteSpan(static_cast<const std::byte*>(value.raw()), value.num_bytes())});
}

}  // namespace runnel::keras
