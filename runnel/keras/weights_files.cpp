#include "runnel/keras/weights_files.h"

#include <memory>
#include <set>

#include "runnel/base/format.h"
#include "runnel/ops/math.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {

void set_all(const WeightValues& values) {
  for (const WeightValue& value : values) value.variable.assign(value.value);
}

WeightRows rows_of(const Model& model, const io::Hdf5Reader& file, const WeightValues& values) {
  using State = train::RestoreStatus::State;
  std::set<std::string> datasets;
  std::set<const VariableSlot*> variables;
  for (const WeightValue& value : values) {
    datasets.insert(value.dataset);
    variables.insert(&value.variable.slot());
  }
  WeightRows rows;
  constexpr size_t kMostObjects = size_t{1} << 20;
  size_t objects = 0;
  file.walk("", [&](const std::string& object, io::Hdf5Kind kind) {
    if (++objects > kMostObjects) {  // groups that contain one another
      throw make_error(Code::data_loss, "[load_weights] {}: more than {} objects; the file is damaged", file.path(),
                       kMostObjects);
    }
    if (kind == io::Hdf5Kind::dataset && !datasets.contains(object)) {
      rows.push_back({State::unused, object, "", "", "of the file"});
    }
  });
  const auto add = [&](State state, const Variable& v, const std::string& detail) {
    rows.push_back({state, v.name(), dtype_name(v.dtype()), v.shape().str(), detail});
  };
  for (const Variable& v : model.weights()) {
    if (!variables.contains(&v.slot())) add(State::missing, v, "");
  }
  for (const WeightValue& value : values) add(State::matched, value.variable, value.dataset);
  return rows;
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
