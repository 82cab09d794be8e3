#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/source_site.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_state.h"
#include "runnel/tensor/tensor.h"

namespace runnel::train {

// The latest checkpoint of a folder, by its state file; nothing if there is none.
using io::latest_checkpoint;

// A value that this library has no object for, as it stands in a checkpoint: the state of TensorFlow's iterators. What
// variant tensors that are read from checkpoints refer to. It is saved again as it is.
class RUNNEL_API SavedVariant : public Object {
 public:
  explicit SavedVariant(std::string bytes) : bytes(std::move(bytes)) {}
  std::string describe() const override { return "a variant as a checkpoint keeps it"; }
  const std::string bytes;  // a serialized VariantTensorDataProto
};

struct CheckpointVariable {
  std::string name;              // its key
  DType dtype = DType::invalid;  // also of numbers that no tensor here can have, such as quantized ones
  Shape shape = {};
};

// What stands in a checkpoint, whatever program wrote it: by keys, without objects. `path` is the prefix of a
// checkpoint, a folder with a state file (then its latest checkpoint is meant), or the folder of a SavedModel.
class RUNNEL_API CheckpointContents {
 public:
  explicit CheckpointContents(const std::string& path, Env& env = Env::posix(),
                              SourceSite where = SourceSite::current());

  const std::string& prefix() const { return reader_->prefix(); }
  std::vector<CheckpointVariable> variables() const;  // by name
  bool has_tensor(const std::string& name) const { return reader_->find(name) != nullptr; }
  Tensor get_tensor(const std::string& name, SourceSite where = SourceSite::current()) const;
  std::map<std::string, DType> get_variable_to_dtype_map() const;
  std::map<std::string, Shape> get_variable_to_shape_map() const;
  const io::CheckpointReader& reader() const { return *reader_; }

 private:
  std::shared_ptr<const io::CheckpointReader> reader_;
};

RUNNEL_API CheckpointContents load_checkpoint(const std::string& path, SourceSite where = SourceSite::current());
RUNNEL_API std::vector<CheckpointVariable> list_variables(const std::string& path,
                                                          SourceSite where = SourceSite::current());
RUNNEL_API Tensor load_variable(const std::string& path, const std::string& name,
                                SourceSite where = SourceSite::current());

}  // namespace runnel::train
