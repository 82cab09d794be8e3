#include "runnel/track/checkpoint.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/compat/v1.h"
#include "runnel/io/caller_line.h"
#include "runnel/ops/variable_slot.h"
#include "runnel/tensor/thread_context.h"
#include "runnel/track/checkpoint_node.h"
#include "runnel/track/checkpoint_path.h"
#include "runnel/track/checkpoint_tensor.h"
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

// The counter as it is now, whatever graph is open.
int64_t number_in(const Variable& counter) { return counter.slot().savable_values()[0].get()[0].item<int64_t>(); }
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
  const auto made = std::make_shared<TrackableList>();
  for (const CheckpointPart& part : list) part.track(*made, std::to_string(made->size()));
  owner_ = made;
}
CheckpointPart::CheckpointPart(const std::map<std::string, CheckpointPart>& dict) {
  const auto made = std::make_shared<TrackableDict>();
  for (const auto& [key, part] : dict) part.track(*made, key);
  owner_ = made;
}

void CheckpointPart::track(Trackable& in, const std::string& name) const {
  if (object_) {
    in.track(name, *object_);
  } else if (owner_) {
    in.track(name, owner_);
  } else {
    in.track(name, HandlePart{handle_});
  }
}
void CheckpointPart::replace(Trackable& in, const std::string& name) const {
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
    const Trackable::Edge* of_root = object.find_edge(name);
    if (of_root && of_root->object != node_->find_edge(name)->object) {
      throw invalid_argument("[Checkpoint] the root has another part '{}' already: choose another name", name);
    }
  }
}

void Checkpoint::track(const std::string& name, const CheckpointPart& part) {
  part.track(*node_, name);
  if (node_->has_root) SavedGraph::settle_attached(node_->root(), name, *node_->find_edge(name)->object);
}

void Checkpoint::set(const std::string& name, const CheckpointPart& part) {
  part.replace(*node_, name);
  if (node_->has_root) SavedGraph::settle_attached(node_->root(), name, *node_->find_edge(name)->object);
}

const Variable& Checkpoint::save_counter() const { return node_->counter(); }
std::shared_ptr<Trackable> Checkpoint::node() const { return node_; }

std::string Checkpoint::save_numbered(const std::string& prefix, Env& env, FunctionRef<Snapshot()> capture_now) {
  refuse_traces("save");
  if (prefix.empty() || prefix.ends_with('/')) {
    throw invalid_argument("[Checkpoint.save] '{}' has no name that numbers can follow; 'save/model.ckpt' has", prefix);
  }
  const Variable& counter = save_counter();
  const int64_t number = number_in(counter) + 1;
  put_number(counter, number);
  const std::string path = fmt::format("{}-{}", prefix, number);
  try {
    write_snapshot(path, capture_now(), env);
    io::write_checkpoint_state(parent_dir(prefix),
                               {.model_checkpoint_path = path, .all_model_checkpoint_paths = {path}}, {}, env);
  } catch (...) {
    put_number(counter, number - 1);
    throw;
  }
  return path;
}

std::string Checkpoint::save(const std::string& prefix, Env& env, SourceSite where) {
  return io::called_at(where, [&] { return save_numbered(prefix, env, [&] { return capture(SourceSite()); }); });
}
std::string Checkpoint::save(const std::string& prefix, const compat::v1::Session& session, Env& env,
                             SourceSite where) {
  return io::called_at(where,
                       [&] { return save_numbered(prefix, env, [&] { return capture(session, SourceSite()); }); });
}

std::string Checkpoint::write(const std::string& prefix, Env& env, SourceSite where) const {
  io::called_at(where, [&] { write_snapshot(prefix, capture(SourceSite()), env); });
  return prefix;
}
std::string Checkpoint::write(const std::string& prefix, const compat::v1::Session& session, Env& env,
                              SourceSite where) const {
  io::called_at(where, [&] { write_snapshot(prefix, capture(session, SourceSite()), env); });
  return prefix;
}

Snapshot Checkpoint::capture(SourceSite where) const {
  return io::called_at(where, [&] {
    refuse_traces("saving");
    return train::capture(node_->root(), node_->attached());
  });
}
Snapshot Checkpoint::capture(const compat::v1::Session& session, SourceSite where) const {
  return io::called_at(where, [&] {
    const Variable& counter = node_->save_counter;  // counts in the program, not in a session
    return train::capture(node_->root(), node_->attached(), [&](const VariableSlot& variable) {
      const bool counts = counter.defined() && &counter.slot() == &variable;
      return counts ? Tensor() : session.value_of(variable);
    });
  });
}

RestoreStatus Checkpoint::restore(const std::optional<std::string>& path, Env& env, SourceSite where) {
  RestoreStatus status = read(path, env, where);
  io::called_at(where, [&] { node_->counter(); });
  return status;
}

RestoreStatus Checkpoint::read(const std::optional<std::string>& path, Env& env, SourceSite where) {
  return io::called_at(where, [&] {
    refuse_traces("restore");
    const auto restoration = std::make_shared<Restoration>();
    restoration->checkpoint = node_;
    if (path) {
      restoration->reader = std::make_shared<const io::CheckpointReader>(without_saved_model(*path, env), env);
      restoration->saved = saved_graph(restoration->reader);
      restoration->saved->restore(node_->root(), node_->attached());
    }
    return RestoreStatus(restoration);
  });
}

}  // namespace runnel::train
