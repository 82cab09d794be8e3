#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/tensor/tensor.h"

namespace runnel::compat::v1 {
class Session;
}

namespace runnel::train {

struct Restoration;  // track/restoration.h

// What became of the values of a checkpoint that was restored, and of the objects of the program. It is as things are
// when asked: values that wait for parts which are made later are `pending` until then. Prints as a table.
//   std::cout << checkpoint.restore(path);
// The assertions throw an Error (failed_precondition) that names what does not hold; each returns the status, so that
// they can be appended to the call: checkpoint.restore(path).assert_consumed().
class RUNNEL_API RestoreStatus {
 public:
  enum class State {
    matched,     // an object has this value
    pending,     // of the file: the part of the program that it is for does not exist (yet)
    missing,     // of the program: the file has no value for it
    unused,      // of the file: its object is there but cannot use it, or no object was saved with it
    mismatched,  // of the file: dtype or shape do not fit the part that was made for it
  };
  struct Row {
    State state;
    std::string name;  // the key, without "/.ATTRIBUTES/VARIABLE_VALUE"
    std::string dtype;
    std::string shape;
    std::string detail;
  };

  explicit RestoreStatus(std::shared_ptr<Restoration> restoration) : restoration_(std::move(restoration)) {}

  // Every value of the file has its object, and every object of the program its value.
  const RestoreStatus& assert_consumed(SourceSite where = SourceSite::current()) const;
  // Every object of the program that has a value got one; what the file has beyond does not count, and what waits for
  // later neither.
  const RestoreStatus& assert_existing_objects_matched(SourceSite where = SourceSite::current()) const;
  // Something but the root got its state.
  const RestoreStatus& assert_nontrivial_match(SourceSite where = SourceSite::current()) const;
  // No warning of values that nobody has used by the end.
  const RestoreStatus& expect_partial() const;

  // In graphs of TensorFlow 1, whose variables have values of their own in every session: gives a session the values
  // that the variables got from the file, and initializes the others. Without a path all are initialized.
  void initialize_or_restore(compat::v1::Session& session, SourceSite where = SourceSite::current()) const;
  // The first half of that. Without a path it is an Error.
  void run_restore_ops(compat::v1::Session& session, SourceSite where = SourceSite::current()) const;

  std::vector<Row> rows() const;
  std::string str() const;

 private:
  std::shared_ptr<Restoration> restoration_;
};

RUNNEL_API std::ostream& operator<<(std::ostream& out, const RestoreStatus& status);

}  // namespace runnel::train
