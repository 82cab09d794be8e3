#include "runnel/keras/fit_backup.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_state.h"
#include "runnel/keras/metrics_base.h"
#include "runnel/keras/model_checkpoint.h"
#include "runnel/ops/io.h"
#include "runnel/ops/random_state.h"
#include "runnel/track/checkpoint.h"
#include "runnel/track/checkpoint_manager.h"

namespace runnel::keras {
namespace {

using NamedValues = std::map<std::string, Tensor>;
constexpr auto kBetweenSaves = std::chrono::seconds(60);
constexpr int kMostOverhead = 100;   // saving takes a hundredth of the time at most
constexpr char kPrefix[] = "ckpt-";  // as managers call them

// Tensors by name as one value: a list of name, dtype and serialized tensor, for which is known only when it is read.
Tensor packed(const NamedValues& values) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : values) {
    texts.insert(texts.end(),
                 {name, dtype_name(value.dtype()), runnel::io::serialize_tensor(value).to_vector<std::string>().at(0)});
  }
  return texts.empty() ? Tensor::empty(DType::string, Shape{0}) : Tensor::of(texts);
}
NamedValues unpacked(const Tensor& value) {
  NamedValues values;
  const std::vector<std::string> texts = value.to_vector<std::string>();
  for (size_t i = 0; i + 2 < texts.size(); i += 3) {
    values[texts[i]] =
        runnel::io::parse_tensor(Tensor::of(std::vector<std::string>{texts[i + 2]})(0), dtype_from_name(texts[i + 1]));
  }
  return values;
}

class ValuesNode : public Trackable {
 public:
  explicit ValuesNode(NamedValues values = {}) : values(std::move(values)) {}
  bool holds_weights() const override { return false; }
  std::vector<SavableValue> savable_values() override {
    return {{.name = "STATE",
             .full_name = "state",
             .get = [this] { return std::vector{packed(values)}; },
             .check =
                 [](const std::vector<Tensor>& given) {
                   const Tensor& t = given.at(0);
                   if (t.dtype() == DType::string && t.shape().rank() == 1 && t.num_elements() % 3 == 0) return;
                   throw invalid_argument("[fit] the saved state is {}{}, not a list of names, dtypes and values",
                                          dtype_name(t.dtype()), t.shape().str());
                 },
             .set =
                 [this](const std::vector<Tensor>& given) {
                   values = unpacked(given.at(0));
                   restored = true;
                 }}};
  }
  NamedValues values;
  bool restored = false;
};

Tensor one(int64_t value) { return Tensor::of(std::vector<int64_t>{value}); }

void add_logs(const std::string& name, const Logs& logs, NamedValues& out) {
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& [key, value] : logs) {
    names.push_back(key);
    values.push_back(value);
  }
  if (names.empty()) return;
  out[name + "/names"] = Tensor::of(names);
  out[name + "/values"] = Tensor::of(values);
}

NamedValues to_values(const FitProgress& p) {
  NamedValues values{
      {"epoch", one(p.epoch)}, {"step", one(p.step)}, {"steps", one(p.steps)}, {"stopped", one(p.stopped ? 1 : 0)}};
  add_logs("logs", p.logs, values);
  if (!p.history.epoch.empty()) values["history"] = Tensor::of(p.history.epoch);
  for (const auto& [name, numbers] : p.history.history) {
    values["history/" + name] = Tensor::of(static_cast<const std::vector<double>&>(numbers));
  }
  return values;
}

FitProgress from_values(const NamedValues& values, const std::string& path) {
  const auto kept = [&](const std::string& name, int64_t fewest) -> const Tensor& {
    const auto found = values.find(name);
    if (found != values.end() && found->second.num_elements() >= fewest) return found->second;
    throw make_error(Code::data_loss, "[fit] resume: {} has no '{}' of a training", path, name);
  };
  const auto number = [&](const char* name) { return kept(name, 1).to_vector<int64_t>()[0]; };
  FitProgress p{
      .epoch = number("epoch"), .step = number("step"), .steps = number("steps"), .stopped = number("stopped") != 0};
  for (const auto& [name, value] : values) {
    if (name == "logs/names") {
      const std::vector<std::string> names = value.to_vector<std::string>();
      const std::vector<double> numbers = kept("logs/values", value.num_elements()).to_vector<double>();
      for (size_t i = 0; i < names.size(); ++i) p.logs.set(names[i], numbers[i]);
    } else if (name == "history") {
      p.history.epoch = value.to_vector<int64_t>();
    } else if (name.starts_with("history/")) {
      p.history.history[name.substr(8)] = value.to_vector<double>();
    }
  }
  return p;
}

// The number behind "ckpt-", or -1.
int64_t save_number(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  int64_t number = -1;
  if (!name.starts_with(kPrefix)) return -1;
  const char* const begin = name.data() + sizeof kPrefix - 1;
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

// The prefix of the state that is saved in a folder; empty where there is none. A state file that leads nowhere is an
// Error: a training that began anew would remove what may still be of use.
std::string saved_state_in(const std::string& dir) {
  Env& env = Env::posix();
  const std::string state_file = join_path(dir, "checkpoint");
  if (!env.exists(state_file)) return "";
  const auto failure = [&](const std::string& what) {
    return make_error(Code::data_loss,
                      "[fit] resume: {} {}. Bring back what is missing, or remove the folder (or name another one) to "
                      "begin anew",
                      state_file, what);
  };
  const std::optional<io::CheckpointState> state = io::read_checkpoint_state(dir);
  if (!state) throw failure("is damaged");
  const std::string prefix = state->model_checkpoint_path;
  if (!io::checkpoint_exists(prefix)) throw failure(fmt::format("names {}, whose index is missing", prefix));
  return prefix;
}

// Reads every value, for its checksum.
void check_whole(const std::string& prefix) {
  const io::CheckpointReader reader(prefix);
  for (const io::CheckpointEntry& entry : reader.entries()) {
    if (entry.slices.empty()) {
      reader.read_raw(entry);
    } else {
      for (const io::CheckpointEntry& part : reader.parts(entry)) reader.read_raw(part);
    }
  }
}

}  // namespace

// What is saved, as one object.
struct FitBackup::Root : Trackable {
  Root(const FitBackup& of, const FitProgress& now, const data::AnyIterator& iterator, const NamedCallbacks& named)
      : progress(std::make_shared<ValuesNode>(to_values(now))) {
    track("progress", progress);
    track("model", of.model_);
    const auto metrics = std::make_shared<TrackableList>();
    for (Metric* metric : of.metrics_(of.model_)) metrics->append(*metric);
    track("metrics", metrics);
    const auto dict = std::make_shared<TrackableDict>();
    for (const auto& [name, callback] : named) {
      callbacks.emplace_back(callback, std::make_shared<ValuesNode>(callback->save_state()));
      dict->set(name, std::shared_ptr<Trackable>(callbacks.back().second));
    }
    track("callbacks", dict);
    track("iterator", iterator);
    track("random", random::program_state());  // after everything that may draw when it is restored
  }
  std::shared_ptr<ValuesNode> progress;
  std::vector<std::pair<CallbackPtr, std::shared_ptr<ValuesNode>>> callbacks;
};

FitBackup::FitBackup(Model& model, const FitOptions& options, std::vector<Metric*> (*metrics)(Model&))
    : model_(model), metrics_(metrics), callbacks_(options.callbacks.begin(), options.callbacks.end()) {
  const BackupAndRestore* callback = nullptr;
  for (const CallbackPtr& c : callbacks_) {
    const auto* found = dynamic_cast<const BackupAndRestore*>(c.get());
    if (!found) continue;
    if (callback || !options.resume.empty()) {
      throw invalid_argument("[fit] one place to resume from is enough: give one BackupAndRestore, or .resume");
    }
    callback = found;
  }
  if (options.resume_freq < 0 || (options.resume_freq > 0 && options.resume.empty())) {
    throw invalid_argument("[fit] resume_freq is {}: it is the number of batches between two saves to .resume",
                           options.resume_freq);
  }
  if (callback) {
    const SaveFrequency& frequency = callback->options().save_freq;
    wanted_ = frequency.every_epoch() || frequency.batches() > 0;
    removes_ = callback->options().delete_checkpoint;
    every_ = frequency.batches();
    dir_ = join_path(callback->options().backup_dir, "chief");  // as Keras calls it
  } else {
    wanted_ = !options.resume.empty();
    every_ = options.resume_freq;
    by_time_ = every_ == 0;
    dir_ = options.resume;
  }
  next_save_ = std::chrono::steady_clock::now() + kBetweenSaves;
  if (!wanted_) return;
  latest_ = saved_state_in(dir_);
  number_ = std::max<int64_t>(latest_.empty() ? 0 : save_number(latest_), 0);
}

// early_stopping, early_stopping_1, ...: a list in another order still finds what is its own.
FitBackup::NamedCallbacks FitBackup::named_callbacks() const {
  NamedCallbacks all;
  std::map<std::string, int> used;
  for (const CallbackPtr& c : callbacks_) {
    const Callback& callback = *c;
    std::string name = to_snake_case(class_name_of(typeid(callback)));
    const int number = used[name]++;
    if (number > 0) name += fmt::format("_{}", number);
    all.emplace_back(std::move(name), c);
  }
  return all;
}

FitProgress FitBackup::progress() const {
  check_whole(latest_);
  const auto node = std::make_shared<ValuesNode>();
  train::Checkpoint({{"progress", node}}).read(latest_, {}, SourceSite()).expect_partial();
  return from_values(node->values, latest_);
}

void FitBackup::restore_root(Root& root) const {
  train::Checkpoint checkpoint{train::CheckpointPart(root)};
  const train::RestoreStatus status = checkpoint.read(latest_, {}, SourceSite());
  status.expect_partial();  // callbacks may be gone
  std::string other;
  for (const train::RestoreStatus::Row& row : status.rows()) {
    const bool of_model = row.name.starts_with("model/") || row.name.starts_with("metrics/");
    if (of_model && row.state != train::RestoreStatus::State::matched) other += "\n  " + row.name;
  }
  if (!other.empty()) {
    throw make_error(Code::failed_precondition,
                     "[fit] resume: the training that {} was saved by had another model, optimizer or metrics; these "
                     "values are not in both:{}\nGive another folder, or remove this one, to begin anew",
                     latest_, other);
  }
}

void FitBackup::restore(const FitProgress& progress, const data::AnyIterator& iterator) const {
  Root root(*this, progress, iterator, {});
  restore_root(root);
}

void FitBackup::restore_with_callbacks(const FitProgress& progress, const data::AnyIterator& iterator) const {
  Root root(*this, progress, iterator, named_callbacks());
  restore_root(root);
  for (const auto& [callback, node] : root.callbacks) {
    if (node->restored) callback->restore_state(node->values);
  }
}

bool FitBackup::due_after_step() {
  if (!wanted_) return false;
  ++batches_;
  return by_time_ ? std::chrono::steady_clock::now() >= next_save_ : every_ > 0 && batches_ >= every_;
}

void FitBackup::save(const FitProgress& progress, const data::AnyIterator& iterator) {
  const auto begin = std::chrono::steady_clock::now();
  Root root(*this, progress, iterator, named_callbacks());
  train::CheckpointManager manager(train::Checkpoint(train::CheckpointPart(root)), dir_, 1, SourceSite());
  latest_ = manager.save(++number_, {}, SourceSite()).value();
  batches_ = 0;
  const auto end = std::chrono::steady_clock::now();
  next_save_ = end + std::max<std::chrono::steady_clock::duration>(kBetweenSaves, (end - begin) * kMostOverhead);
}

void FitBackup::finish() {
  if (wanted_ && removes_) Env::posix().remove_tree(dir_);
}

}  // namespace runnel::keras
