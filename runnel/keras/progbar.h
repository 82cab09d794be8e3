#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::keras::utils {

struct ProgbarOptions {
  int width = 30;
  int verbose = 1;                                 // 0: nothing, 1: the bar, 2: one line at the end
  double interval = 0.05;                          // seconds between two drawings
  bool averages = true;                            // false: every value is shown as given
  std::vector<std::string> stateful_metrics = {};  // shown as given; of all others the mean over steps is shown
  std::string unit_name = "step";
  std::function<void(const std::string&)> write = {};  // where the text goes; nothing: standard output
  std::optional<bool> terminal = {};                   // nothing: as standard output is
  std::function<double()> clock = {};                  // seconds; nothing: the machine's
};

// Keras's progress bar. On a terminal the line is drawn over the one before:
//    469/1875 [======>.......................] - ETA: 1s - loss: 0.5432
//   1875/1875 [==============================] - 2s 1ms/step - loss: 0.2971 - accuracy: 0.9140
// elsewhere only the last one is written. Verbose 2:
//   1875/1875 - 2s - loss: 0.2971 - accuracy: 0.9140 - 2s/epoch - 1ms/step
class RUNNEL_API Progbar {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  explicit Progbar(std::optional<int64_t> target, ProgbarOptions options = {});  // nothing: an unknown number of steps

  // `current` steps are done, the latest of them with these values. finalize ends the line; nothing: when the target is
  // reached.
  void update(int64_t current, const Values& values = {}, std::optional<bool> finalize = {});
  void add(int64_t steps, const Values& values = {}) { update(seen_ + steps, values); }

 private:
  struct Sum {
    double total = 0, count = 0;
  };
  void record(int64_t current, const Values& values);
  void draw_bar(int64_t current, double now, bool finalize);
  void write_line(int64_t current, double now);
  double step_duration(int64_t current, double now);
  std::string metrics() const;

  std::optional<int64_t> target_;
  ProgbarOptions options_;
  int64_t seen_ = 0;
  std::vector<std::string> order_;
  std::map<std::string, Sum> sums_;
  double start_;
  double last_update_;
  std::optional<double> after_first_step_;
  size_t drawn_ = 0;  // characters of the line on the terminal
};

}  // namespace runnel::keras::utils
