#include <algorithm>
#include <cctype>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_state.h"
#include "runnel/keras/weights_files.h"
#include "runnel/op/composed.h"
#include "runnel/track/checkpoint.h"
#include "runnel/track/restoration.h"
#include "runnel/track/snapshot.h"

namespace runnel::keras {
namespace {

enum class WeightsFormat { checkpoint, legacy_h5, object_h5 };

bool has_h5_ending(const std::string& path) {
  return path.ends_with(".h5") || path.ends_with(".keras") || path.ends_with(".hdf5");
}

WeightsFormat format_to_write(const std::string& path, const std::string& wish) {
  std::string format = wish;
  std::ranges::transform(format, format.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool wants_h5 = format == "h5" || format == "hdf5" || format == "keras";
  const bool wants_tf = format == "tf" || format == "tensorflow";
  if (!format.empty() && !wants_h5 && !wants_tf) {
    throw invalid_argument(
        "[save_weights] Unknown format. Received: `save_format`={}. Was expecting one of {{\"tf\", \"h5\"}}.", wish);
  }
  if (path.ends_with(".weights.h5")) return WeightsFormat::object_h5;
  if (wants_tf && has_h5_ending(path)) {
    throw invalid_argument(
        "[save_weights] save_weights got save_format=\"tf\"/\"tensorflow\", but the filepath ({}) looks like an HDF5 "
        "file. Omit the \".h5\"/\".keras\" when saving in TensorFlow format.",
        path);
  }
  return wants_h5 || has_h5_ending(path) ? WeightsFormat::legacy_h5 : WeightsFormat::checkpoint;
}

WeightsFormat format_of_file(const std::string& path) {
  if (path.ends_with(".weights.h5")) return WeightsFormat::object_h5;
  if (has_h5_ending(path)) return WeightsFormat::legacy_h5;
  Env& env = Env::posix();
  const bool is_h5 = !io::checkpoint_exists(path) && io::is_hdf5_file(path, env);
  return is_h5 ? WeightsFormat::legacy_h5 : WeightsFormat::checkpoint;
}

// What checkpoints of a model begin with: the model itself. It lives as long as the call.
train::Checkpoint checkpoint_of(Model& model) { return train::Checkpoint(train::CheckpointPart(model)); }

void require_weights(const Model& model) {
  const std::vector<Layer*> layers = model.layers();
  const bool all_built = std::ranges::all_of(layers, [](const Layer* layer) { return layer->built(); });
  if (model.is_functional() || (model.built() && all_built) || !model.weights().empty()) return;
  throw make_error(Code::failed_precondition,
                   "Weights for model '{}' have not yet been created. Weights are created when the Model is first "
                   "called on inputs or by build_for_shape.",
                   model.name());
}

// Keras is silent there. State of optimizers and metrics is often left out, and what is skipped has been named.
void warn_of_unused(const std::string& path, const WeightRows& rows, const LoadWeightsOptions& options) {
  using State = train::RestoreStatus::State;
  if (options.by_name) {
    if (std::ranges::any_of(rows, [](const auto& row) { return row.state == State::matched; })) return;
    log_warning(
        "[load_weights] {}: nothing was loaded: no layer of the model has weights and the name of a layer in the file",
        path);
    return;
  }
  if (options.skip_mismatch) return;
  std::vector<std::string> unused;
  for (const auto& row : rows) {
    if (row.state != State::unused || row.name.starts_with("optimizer") || row.name.starts_with("metrics/")) continue;
    unused.push_back(row.name);
  }
  if (unused.empty()) return;
  constexpr size_t kShown = 10;
  const size_t count = unused.size();
  if (count > kShown) unused.resize(kShown);
  log_warning("[load_weights] {}: the model has no place for {} weights of the file: {}{}. Is it another model's?",
              path, count, fmt::join(unused, ", "), count > kShown ? ", ..." : "");
}

// Of a file of HDF5; checkpoints make their folder.
void require_folder_of(const std::string& filepath) {
  const std::string folder = parent_dir(filepath);
  if (Env::posix().exists(folder)) return;
  throw make_error(Code::not_found, "[save_weights] {}: there is no folder '{}'; make it first", filepath, folder);
}

}  // namespace

void Model::save_weights(const std::string& filepath, const SaveWeightsOptions& options, SourceSite where) const {
  called_from(where, [&] {
    refuse_moved_from();
    auto& model = const_cast<Model&>(*this);  // what is saved is not changed; the walks are those that restoring uses
    const WeightsFormat format = format_to_write(filepath, options.save_format);
    require_weights(*this);
    if (format != WeightsFormat::checkpoint) require_folder_of(filepath);
    const std::string first_file = format == WeightsFormat::checkpoint ? io::checkpoint_index_path(filepath) : filepath;
    if (!options.overwrite && Env::posix().exists(first_file)) {
      throw make_error(Code::already_exists, "[save_weights] {} is there already, and overwrite is false", first_file);
    }
    if (format == WeightsFormat::checkpoint) {
      const train::Snapshot snapshot = checkpoint_of(model).capture(SourceSite());
      train::write_snapshot(filepath, snapshot, Env::posix(), [&] {  // while the folder is locked
        io::write_checkpoint_state(parent_dir(filepath), {.model_checkpoint_path = filepath});
      });
      return;
    }
    io::Hdf5Writer file(filepath);
    format == WeightsFormat::object_h5 ? write_object_weights(model, file) : write_legacy_weights(model, file);
    file.finish();
  });
}

train::RestoreStatus Model::load_weights(const std::string& filepath, const LoadWeightsOptions& options,
                                         SourceSite where) {
  return called_from(where, [&] {
    refuse_moved_from();
    const WeightsFormat format = format_of_file(filepath);
    if (options.by_name && format != WeightsFormat::legacy_h5) {
      throw make_error(Code::unimplemented,
                       "[load_weights] Weights may only be loaded based on topology into Models when loading "
                       "TensorFlow-formatted weights or .weights.h5 (got by_name=true to load_weights).");
    }
    if (options.skip_mismatch && !options.by_name && format != WeightsFormat::object_h5) {
      throw invalid_argument(
          "[load_weights] When calling model.load_weights, skip_mismatch can only be set to true when by_name is "
          "true.");
    }
    train::Checkpoint checkpoint = checkpoint_of(*this);
    if (format == WeightsFormat::checkpoint) {
      train::RestoreStatus status = checkpoint.read(filepath, {}, SourceSite());
      status.assert_nontrivial_match(SourceSite());
      return status;
    }
    const io::Hdf5Reader file(filepath);
    require_weights(*this);
    const auto restoration = std::make_shared<train::Restoration>();
    restoration->checkpoint = std::dynamic_pointer_cast<train::CheckpointNode>(checkpoint.node());
    restoration->loaded_file = filepath;
    restoration->loaded = format == WeightsFormat::object_h5 ? read_object_weights(*this, file, options)
                                                             : read_legacy_weights(*this, file, options);
    warn_of_unused(filepath, restoration->loaded, options);
    return train::RestoreStatus(restoration);
  });
}

template <>
train::RestoreStatus Model::load_weights(const std::optional<std::string>& latest, const LoadWeightsOptions& options,
                                         SourceSite where) {
  if (latest) return load_weights(*latest, options, where);
  return called_from(where, [&]() -> train::RestoreStatus {
    throw invalid_argument(
        "[load_weights] no checkpoint was given (an empty path), as latest_checkpoint gives where there is none yet; "
        "ask it first: if (const auto path = train::latest_checkpoint(folder)) model.load_weights(*path)");
  });
}

}  // namespace runnel::keras
