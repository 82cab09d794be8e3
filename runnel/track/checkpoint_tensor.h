#pragma once

// Internal: tensors to and from the files of checkpoints.
#include <string>

#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_writer.h"
#include "runnel/tensor/tensor.h"

namespace runnel::train {

// The value is read straight into the memory of the tensor. Variants are SavedVariant.
RUNNEL_API Tensor read_tensor(const io::CheckpointReader& reader, const io::CheckpointEntry& entry);
// A part of a tensor of numbers.
Tensor read_tensor_slice(const io::CheckpointReader& reader, const io::CheckpointEntry& entry,
                         const io::CheckpointSlice& slice);
RUNNEL_API void write_tensor(io::CheckpointWriter& writer, const std::string& key, const Tensor& tensor);
// DType::invalid for numbers that no tensor here can have.
RUNNEL_API DType dtype_of_entry(const io::CheckpointEntry& entry);

}  // namespace runnel::train
