#include "runnel/track/checkpoint_contents.h"

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/track/checkpoint_path.h"
#include "runnel/track/checkpoint_tensor.h"

namespace runnel::train {
namespace {

// The prefix that a path means.
std::string resolved(const std::string& path, Env& env) {
  const std::string prefix = without_saved_model(path, env);
  if (prefix != path || io::checkpoint_exists(path, env) || !env.exists(path) || !env.stat(path).is_dir) return prefix;
  const std::optional<std::string> latest = io::latest_checkpoint(path, "checkpoint", env);
  if (latest) return *latest;
  throw make_error(Code::not_found, "[checkpoint] the folder {} has no latest checkpoint: name the prefix of one",
                   path);
}

}  // namespace

std::string without_saved_model(const std::string& path, Env& env) {
  const bool saved_model = !path.empty() && (env.exists(join_path(path, "saved_model.pb")) ||
                                             env.exists(join_path(path, "saved_model.pbtxt")));
  return saved_model ? join_path(join_path(path, "variables"), "variables") : path;
}

CheckpointContents::CheckpointContents(const std::string& path, Env& env, SourceSite where)
    : reader_(
          at_caller(where, [&] { return std::make_shared<const io::CheckpointReader>(resolved(path, env), env); })) {}

std::vector<CheckpointVariable> CheckpointContents::variables() const {
  std::vector<CheckpointVariable> all;
  for (const io::CheckpointEntry& entry : reader_->entries()) {
    all.push_back({entry.key, dtype_of_entry(entry), Shape(entry.shape)});
  }
  return all;
}

Tensor CheckpointContents::get_tensor(const std::string& name, SourceSite where) const {
  return at_caller(where, [&] { return read_tensor(*reader_, reader_->entry(name)); });
}

std::map<std::string, DType> CheckpointContents::get_variable_to_dtype_map() const {
  std::map<std::string, DType> dtypes;
  for (const CheckpointVariable& variable : variables()) dtypes.emplace(variable.name, variable.dtype);
  return dtypes;
}

std::map<std::string, Shape> CheckpointContents::get_variable_to_shape_map() const {
  std::map<std::string, Shape> shapes;
  for (const CheckpointVariable& variable : variables()) shapes.emplace(variable.name, variable.shape);
  return shapes;
}

CheckpointContents load_checkpoint(const std::string& path, SourceSite where) {
  return CheckpointContents(path, Env::posix(), where);
}

std::vector<CheckpointVariable> list_variables(const std::string& path, SourceSite where) {
  return load_checkpoint(path, where).variables();
}

Tensor load_variable(const std::string& path, const std::string& name, SourceSite where) {
  return load_checkpoint(path, where).get_tensor(name, where);
}

}  // namespace runnel::train
