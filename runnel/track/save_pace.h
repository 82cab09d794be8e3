#pragma once

// Internal: how far apart saves are, so that they cost no more than a stated part of the time.
#include <functional>
#include <mutex>

namespace runnel::train {

// After a save that cost C seconds the next one is due when C / max_overhead have passed since that one began. C is
// what the program waited for, and the processor time of the background thread, which may be taken from the program's.
class SavePace {
 public:
  // `clock`: seconds of a clock that never goes back.
  SavePace(double max_overhead, std::function<double()> clock);

  bool due() const;
  void begin();
  void waited();                           // until now, in the program, since begin()
  void written(double processor_seconds);  // of the background thread

 private:
  const double max_overhead_;
  const std::function<double()> clock_;
  mutable std::mutex mutex_;
  bool any_ = false;
  double began_ = 0, cost_ = 0;
};

}  // namespace runnel::train
