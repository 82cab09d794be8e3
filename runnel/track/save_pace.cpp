#include "runnel/track/save_pace.h"

#include <utility>

namespace runnel::train {

SavePace::SavePace(double max_overhead, std::function<double()> clock)
    : max_overhead_(max_overhead), clock_(std::move(clock)) {}

bool SavePace::due() const {
  const std::lock_guard lock(mutex_);
  return !any_ || clock_() - began_ >= cost_ / max_overhead_;
}

void SavePace::begin() {
  const std::lock_guard lock(mutex_);
  any_ = true;
  began_ = clock_();
  cost_ = 0;
}

void SavePace::waited() {
  const std::lock_guard lock(mutex_);
  cost_ += clock_() - began_;
}

void SavePace::written(double processor_seconds) {
  const std::lock_guard lock(mutex_);
  cost_ += processor_seconds;
}

}  // namespace runnel::train
