#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::train {

struct CheckpointsIteratorOptions {
  double min_interval_secs = 0;           // at least so long between two checkpoints that are given
  std::optional<double> timeout = {};     // seconds to wait for one; none: for ever
  std::function<bool()> timeout_fn = {};  // called after a timeout: true ends it, false waits on
  double seconds_to_sleep = 1;            // between two looks at the folder
  Env* env = &Env::posix();
};

// The checkpoints that another program saves in a folder, as they appear, for a program that evaluates them:
//   for (const std::string& path : train::checkpoints_iterator("./save", {.timeout = 3600})) {
//     checkpoint.restore(path);
//     ...
//   }
// It looks when it is asked for the next: those that came and went meanwhile are passed over, the latest is given. It
// ends when none has come in `timeout` seconds, unless timeout_fn says otherwise.
class RUNNEL_API CheckpointsIterator {
 public:
  CheckpointsIterator(std::string checkpoint_dir, CheckpointsIteratorOptions options);

  std::optional<std::string> next();  // nothing at the end

  class Position {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string*;
    using reference = const std::string&;
    explicit Position(CheckpointsIterator* of) : of_(of) { ++*this; }
    reference operator*() const { return *path_; }
    pointer operator->() const { return &*path_; }
    Position& operator++() {
      path_ = of_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !path_; }

   private:
    CheckpointsIterator* of_;
    std::optional<std::string> path_;
  };
  Position begin() { return Position(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<std::string> wait_for_new() const;

  std::string directory_;
  CheckpointsIteratorOptions options_;
  std::optional<std::string> last_;
  Clock::time_point given_;  // when that was
};

RUNNEL_API CheckpointsIterator checkpoints_iterator(const std::string& checkpoint_dir,
                                                    const CheckpointsIteratorOptions& options = {});

}  // namespace runnel::train
