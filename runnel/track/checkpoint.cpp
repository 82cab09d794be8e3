#include "runnel/track/checkpoint.h"

#include <algorithm>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/compat/v1.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/profile_step.h"
#include "runnel/tensor/thread_context.h"
#include "runnel/track/checkpoint_node.h"
#include "runnel/track/checkpoint_path.h"
#include "runnel/track/checkpoint_tensor.h"
#include "runnel/track/given_parts.h"
#include "runnel/track/object_graph_bytes.h"
#include "runnel/track/restoration.h"

namespace runnel::train {
namespace {

struct HandlePart {
  const Tensor& of;
  const Tensor& handle() const { return of; }
};

void refuse_traces(const char* call) {
  if (!thread_context().tracing) return;
  throw make_error(Code::failed_precondition,
                   "[Checkpoint] {} in a function would run once, while the function is traced: call it outside", call);
}

void put_number(const Variable& counter, int64_t number) { counter.slot().savable_values()[0].set({Tensor(number)}); }

ObjectGraph read_object_graph(const io::CheckpointReader& reader, const io::CheckpointEntry& entry) {
  try {
    return object_graph_from_bytes(reader.read_strings(entry).at(0));
  } catch (const Error& error) {
    if (error.has_frame(ErrorFrame::Kind::file)) throw;
    throw make_error(error.code(), "[checkpoint] {}: key '{}': {}", reader.shard_path(entry.shard), entry.key,
                     error.what());
  }
}

// The reading side of a SavedGraph.
std::shared_ptr<SavedGraph> saved_graph(const std::shared_ptr<const io::CheckpointReader>& reader) {
  const io::CheckpointEntry* graph = reader->find(kObjectGraphKey);
  if (graph) {
    return SavedGraph::make(
        read_object_graph(*reader, *graph),
        [reader](const std::string& key, const std::vector<std::string>& suffixes) {
          std::vector<Tensor> tensors;
          for (const std::string& suffix : suffixes) {
            tensors.push_back(read_tensor(*reader, reader->entry(key + suffix)));
          }
          return tensors;
        },
        reader->prefix());
  }
  std::vector<std::string> names;
  for (const io::CheckpointEntry& entry : reader->entries()) names.push_back(entry.key);
  return SavedGraph::make_by_name(
      std::move(names),
      [reader](const std::string& name, const std::vector<std::string>&) {
        std::vector<Tensor> tensors;
        if (const io::CheckpointEntry* entry = reader->find(name)) tensors.push_back(read_tensor(*reader, *entry));
        return tensors;
      },
      reader->prefix());
}

}  // namespace

// --- parts ---

CheckpointPart::CheckpointPart(Trackable* part) : object_(part) {
  if (!part) throw invalid_argument("[Checkpoint] a part is a null pointer");
}
CheckpointPart::CheckpointPart(std::shared_ptr<Trackable> part, int) : owner_(std::move(part)) {
  if (!owner_) throw invalid_argument("[Checkpoint] a part is a null pointer");
}
CheckpointPart::CheckpointPart(const std::vector<CheckpointPart>& list) {
  const auto made = std::make_shared<GivenList>();
  for (const CheckpointPart& part : list) {
    const std::string name = std::to_string(made->size());
    part.track(*made, name);
    made->given.insert(name);
  }
  owner_ = made;
}
CheckpointPart::CheckpointPart(const std::map<std::string, CheckpointPart>& dict) {
  const auto made = std::make_shared<GivenDict>();
  for (const auto& [key, part] : dict) {
    part.track(*made, key);
    made->given.insert(key);
  }
  owner_ = made;
}

void CheckpointPart::track(Trackable& in, const std::string& name) const {
  if (name.empty()) throw invalid_argument("[Checkpoint] a part has an empty name");
  if (object_) {
    in.track(name, *object_);
  } else if (owner_) {
    in.track(name, owner_);
  } else {
    in.track(name, HandlePart{handle_});
  }
}
void CheckpointPart::replace(Trackable& in, const std::string& name) const {
  if (name.empty()) throw invalid_argument("[Checkpoint] a part has an empty name");
  if (object_) {
    in.replace(name, *object_);
  } else if (owner_) {
    in.replace(name, owner_);
  } else {
    in.replace(name, HandlePart{handle_});
  }
}

// --- the checkpoint ---

Checkpoint::Checkpoint() : node_(std::make_shared<CheckpointNode>()) {}

Checkpoint::Checkpoint(CheckpointParts parts) : Checkpoint() {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [name, part] : parts) track(name, part);
}

Checkpoint::Checkpoint(const CheckpointPart& root, CheckpointParts parts) : Checkpoint() {
  node_->has_root = true;
  root.track(*node_, "root");
  const Trackable& object = node_->root();
  parts.emplace_back("root", root);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  node_->untrack("root");
  for (const auto& [name, part] : parts) {
    part.track(*node_, name);
    if (name != "root") node_->given.insert(name);  // the root has an Error of its own
    const Trackable::Edge* of_root = object.find_edge(name);
    if (of_root && of_root->object != node_->find_edge(name)->object) {
      throw invalid_argument("[Checkpoint] the root has another part '{}' already: choose another name", name);
    }
  }
}

void Checkpoint::track(const std::string& name, const CheckpointPart& part) {
  const bool known = node_->find_edge(name) != nullptr;
  part.track(*node_, name);
  try {
    if (node_->has_root) SavedGraph::settle_attached(node_->root(), name, *node_->find_edge(name)->object);
  } catch (...) {  // the value does not fit: there is no such part, and the value goes on waiting
    if (!known) node_->untrack(name);
    throw;
  }
  node_->given.insert(name);
}

void Checkpoint::set(const std::string& name, const CheckpointPart& part) {
  if (node_->has_root) {
    // Before it takes the place of another: if its value does not fit, that one stays.
    TrackableDict alone;
    part.track(alone, name);
    SavedGraph::settle_attached(node_->root(), name, *alone.find_edge(name)->object);
  }
  part.replace(*node_, name);
  node_->given.insert(name);
}

const Variable& Checkpoint::save_counter() const { return node_->counter(); }
std::shared_ptr<Trackable> Checkpoint::node() const { return node_; }

void Checkpoint::write_files(const std::string& path, const CheckpointOptions& options, CaptureNow capture_now,
                             WriteHooks hooks) const {
  node_->writer.sync();
  auto written = std::move(hooks.written);
  auto write = [path, options, hooks = std::move(hooks), snapshot = capture_now()] {
    write_snapshot(path, snapshot, *options.env, [&] {
      if (hooks.in_place) hooks.in_place(path);
    });
    for (const auto& callback : options.experimental_write_callbacks) callback(path);
  };
  if (!options.experimental_enable_async_checkpoint) return write();
  node_->writer.start(std::move(write), std::move(written));
}

std::string Checkpoint::save_numbered(const std::string& prefix, std::optional<int64_t> number,
                                      const CheckpointOptions& options, CaptureNow capture_now, WriteHooks hooks) {
  refuse_traces("save");
  if (prefix.empty() || prefix.ends_with('/')) {
    throw invalid_argument("[Checkpoint.save] '{}' has no name that numbers can follow; 'save/model.ckpt' has", prefix);
  }
  node_->writer.sync();  // what went wrong there comes before anything counts
  const Variable& counter = save_counter();
  const int64_t before = current_number(counter);
  put_number(counter, before + 1);
  const std::string path = fmt::format("{}-{}", prefix, number.value_or(before + 1));
  // Where a callback fails after that, the number is used up: the next save would replace what is the latest.
  const auto is_saved = std::make_shared<bool>(false);
  hooks.in_place = [is_saved, in_place = std::move(hooks.in_place)](const std::string& saved) {
    in_place(saved);
    *is_saved = true;
  };
  try {
    write_files(path, options, capture_now, std::move(hooks));
  } catch (...) {
    if (!*is_saved) put_number(counter, before);
    throw;
  }
  return path;
}

std::string Checkpoint::save_as_latest(const std::string& prefix, const CheckpointOptions& options,
                                       CaptureNow capture_now) {
  const auto name_it = [&env = *options.env](const std::string& path) {
    io::write_checkpoint_state(parent_dir(path), {.model_checkpoint_path = path, .all_model_checkpoint_paths = {path}},
                               {}, env);
  };
  return save_numbered(prefix, std::nullopt, options, capture_now, {.in_place = name_it});
}

std::string Checkpoint::save(const std::string& prefix, const CheckpointOptions& options, SourceSite where) {
  return at_caller(where, [&] { return save_as_latest(prefix, options, [&] { return capture(SourceSite()); }); });
}
std::string Checkpoint::save(const std::string& prefix, const compat::v1::Session& session,
                             const CheckpointOptions& options, SourceSite where) {
  return at_caller(where,
                   [&] { return save_as_latest(prefix, options, [&] { return capture(session, SourceSite()); }); });
}

std::string Checkpoint::write(const std::string& prefix, const CheckpointOptions& options, SourceSite where) const {
  at_caller(where, [&] { write_files(prefix, options, [&] { return capture(SourceSite()); }, {}); });
  return prefix;
}
std::string Checkpoint::write(const std::string& prefix, const compat::v1::Session& session,
                              const CheckpointOptions& options, SourceSite where) const {
  at_caller(where, [&] { write_files(prefix, options, [&] { return capture(session, SourceSite()); }, {}); });
  return prefix;
}

void Checkpoint::sync(SourceSite where) const {
  at_caller(where, [&] { node_->writer.sync(); });
}

Snapshot Checkpoint::capture(SourceSite where) const {
  return at_caller(where, [&] {
    refuse_traces("saving");
    GivenParts::require_all(*node_);
    return train::capture(node_->root(), node_->attached());
  });
}
Snapshot Checkpoint::capture(const compat::v1::Session& session, SourceSite where) const {
  return at_caller(where, [&] {
    GivenParts::require_all(*node_);
    const Variable& counter = node_->save_counter;  // counts in the program, not in a session
    return train::capture(node_->root(), node_->attached(), [&](const VariableSlot& variable) {
      const bool counts = counter.defined() && &counter.slot() == &variable;
      return counts ? Tensor() : session.value_of(variable);
    });
  });
}

RestoreStatus Checkpoint::restore(const std::optional<std::string>& path, const CheckpointOptions& options,
                                  SourceSite where) {
  // The counter is there before, so that the file's is checked with everything else; a restore that fails makes none.
  const bool made = at_caller(where, [&] {
    refuse_traces("restore");
    return node_->make_counter();
  });
  try {
    return read(path, options, where);
  } catch (...) {
    if (made) node_->forget_counter();
    throw;
  }
}

RestoreStatus Checkpoint::read(const std::optional<std::string>& path, const CheckpointOptions& options,
                               SourceSite where) {
  return at_caller(where, [&] {
    refuse_traces("restore");
    profile::Span span(profile::Kind::checkpoint, "restore checkpoint", profile::current_step());
    if (span) span.set_detail(path.value_or(""));
    node_->writer.sync();
    Env& env = *options.env;
    const auto restoration = std::make_shared<Restoration>();
    restoration->checkpoint = node_;
    if (path) {
      restoration->reader = std::make_shared<const io::CheckpointReader>(without_saved_model(*path, env), env);
      restoration->reader->open_shards();  // values may wait for a long time, and older checkpoints are removed
      restoration->saved = saved_graph(restoration->reader);
      restoration->saved->restore(node_->root(), node_->attached());
    }
    return RestoreStatus(restoration);
  });
}

}  // namespace runnel::train
