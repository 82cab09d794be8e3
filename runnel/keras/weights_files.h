#pragma once

// Internal: the weights of models in files of HDF5.
#include <string>
#include <vector>

#include "runnel/io/hdf5.h"
#include "runnel/keras/model.h"
#include "runnel/track/restore_status.h"

namespace runnel::keras {

// Values that were found to fit, set all at once: nothing changes where one of them does not.
struct WeightValue {
  Variable variable;
  Tensor value;
  std::string dataset;
};
using WeightValues = std::vector<WeightValue>;
void set_all(const WeightValues& values);
// What becomes of the weights of the file and of the model, with these values.
using WeightRows = std::vector<train::RestoreStatus::Row>;
WeightRows rows_of(const Model& model, const io::Hdf5Reader& file, const WeightValues& values);

Tensor tensor_of(io::NpyArray array);
// The value of the dataset for the variable; an Error (invalid_argument) where the shape does not fit.
Tensor value_for(const Variable& variable, const io::Hdf5Reader& file, const std::string& dataset);
void write_value(io::Hdf5Writer& file, const std::string& dataset, const Variable& variable);

// Keras's older format: a group for every layer, with the attributes layer_names and weight_names.
void write_legacy_weights(const Model& model, io::Hdf5Writer& file);
WeightRows read_legacy_weights(const Model& model, const io::Hdf5Reader& file, const LoadWeightsOptions& options);

// The format of .weights.h5: what is in a layer stands at the path of the attributes that lead to it. Has the
// optimizer's state and that of metrics, too.
void write_object_weights(Model& model, io::Hdf5Writer& file);
WeightRows read_object_weights(Model& model, const io::Hdf5Reader& file, const LoadWeightsOptions& options);

}  // namespace runnel::keras
