#pragma once

// Checkpoints of TensorFlow 1: values by the names of variables.
//   compat::v1::train::Saver saver;
//   saver.save(session, "./save/model.ckpt", global_step);  // save/model.ckpt-100
//   saver.restore(session, compat::v1::train::latest_checkpoint("./save"));

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/source_site.h"
#include "runnel/compat/v1.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_slice.h"
#include "runnel/io/checkpoint_state.h"

namespace runnel::compat::v1::train {

using io::latest_checkpoint;

// What a Saver saves: variables by their own names, or by others. None: all of the default graph.
class RUNNEL_API SaverVariables {
 public:
  using Named = std::pair<std::string, Variable>;
  SaverVariables() = default;
  SaverVariables(std::initializer_list<Variable> variables);         // NOLINT: implicit, as below
  SaverVariables(const std::vector<Variable>& variables);            // NOLINT
  SaverVariables(const PartitionedVariable& variable);               // NOLINT
  SaverVariables(std::initializer_list<Named> variables);            // NOLINT
  SaverVariables(const std::map<std::string, Variable>& variables);  // NOLINT

 private:
  friend class Saver;
  std::optional<std::vector<Named>> variables_;  // an empty name: the variable's own
};

// What takes a value: variables, or the name of one or of a scope.
class RUNNEL_API InitTarget {
 public:
  InitTarget(const Variable& variable) : variables_{variable} {}                     // NOLINT: implicit, as below
  InitTarget(const PartitionedVariable& variable) : variables_(variable.parts()) {}  // NOLINT
  InitTarget(std::vector<Variable> parts) : variables_(std::move(parts)) {}          // NOLINT: of one variable
  InitTarget(std::string name) : name_(std::move(name)) {}                           // NOLINT
  InitTarget(const char* name) : name_(name) {}                                      // NOLINT

  const std::vector<Variable>& variables() const { return variables_; }
  const std::string& name() const { return name_; }

 private:
  std::vector<Variable> variables_;
  std::string name_;
};
using AssignmentMap = std::vector<std::pair<std::string, InitTarget>>;

// The initializers of variables give them the values of a checkpoint, by the keys there; call it before
// global_variables_initializer(). The map has, in this order, what is in the checkpoint and what takes it here:
//   {"old/w", "new/w"}, {"old/w", w}   one variable of the graph, by its name or itself; also one in parts
//   {"old/", "new/"}                   every variable of the scope new/, from the value of its name in old/
//   {"/", "new/"}                      the same, from names without a scope
// `ckpt_dir_or_file`: a prefix, or a folder, whose latest checkpoint is meant. A name that is not there and a value
// that does not fit are Errors, and then nothing has changed. Outside of a graph the variables have the values at once.
RUNNEL_API void init_from_checkpoint(const std::string& ckpt_dir_or_file, const AssignmentMap& assignment_map,
                                     SourceSite where = SourceSite::current());

struct SaverOptions {
  int max_to_keep = 5;  // 0: all stay, and the state file names the last one only
  double keep_checkpoint_every_n_hours = 10000;
  bool reshape = false;              // restore takes values of another shape with as many elements
  bool pad_step_number = false;      // model.ckpt-00000100
  bool save_relative_paths = false;  // in the state file, so that the folder can be moved
  Env* env = &Env::posix();
};

// The number of a checkpoint: none, a number, or the value of a variable or tensor in the session.
class RUNNEL_API GlobalStep {
 public:
  GlobalStep() = default;
  template <std::integral T>
  GlobalStep(T number) : number_(static_cast<int64_t>(number)) {}  // NOLINT: implicit, as below
  GlobalStep(const Variable& variable) : fetch_(variable) {}       // NOLINT
  GlobalStep(const Tensor& tensor) : fetch_(tensor) {}             // NOLINT

 private:
  friend class Saver;
  std::optional<int64_t> number_;
  std::optional<Fetch> fetch_;
};

struct SaverSave {
  std::string latest_filename = "checkpoint";  // of the state file
  bool write_state = true;
};

// Saves the variables that the default graph has when the Saver is made, and gives them back. Files are TensorFlow's:
// its Saver reads them, and what it wrote is read. No `.meta` file with the graph is written.
class RUNNEL_API Saver {
 public:
  Saver() : Saver(SaverVariables()) {}
  explicit Saver(const SaverVariables& var_list, const SaverOptions& options = {});
  explicit Saver(const SaverOptions& options) : Saver(SaverVariables(), options) {}

  // The prefix of the new checkpoint: save_path, and the step where it is given. When it returns, the files are on the
  // disk, the state file names them, and what max_to_keep leaves no room for is gone.
  std::string save(Session& session, const std::string& save_path, const GlobalStep& global_step = {},
                   const SaverSave& options = {}, SourceSite where = SourceSite::current());
  // The variables have their values in this session then; their initializers need not have run. A name that is missing
  // or a value that does not fit is an Error, and no variable has changed. A checkpoint of train::Checkpoint is read by
  // the names that its variables had. No path, as latest_checkpoint gives where there is none yet, is an Error.
  void restore(Session& session, const std::optional<std::string>& save_path, SourceSite where = SourceSite::current());

  // Of this Saver, from the oldest.
  std::vector<std::string> last_checkpoints() const;

 private:
  struct Part {  // of a value: all of it, or a slice
    Variable variable;
    io::CheckpointSlice slice;
  };
  struct Value {
    PartialShape shape;  // of the whole
    std::vector<Part> parts;
    bool sliced = false;
  };
  struct Kept {
    std::string prefix;
    double time;
  };
  void add(const std::string& name, const Variable& variable);
  void restore_values(Session& session, const std::string& save_path) const;
  void write(Session& session, const std::string& prefix, FunctionRef<void()> and_then) const;
  // The key of each value in a checkpoint; an Error that names those that are missing.
  std::map<std::string, std::string> keys_in(const io::CheckpointReader& reader) const;
  std::map<std::string, std::string> keys_by_full_name(const io::CheckpointReader& reader) const;
  void record(const std::string& prefix, const SaverSave& options);
  void remove_old();

  SaverOptions options_;
  std::map<std::string, Value> values_;  // in the order in which TensorFlow saves them
  std::vector<Kept> kept_, to_remove_;
  double next_to_preserve_;  // a time: a checkpoint that is newer and falls out of kept_ stays
};

}  // namespace runnel::compat::v1::train
