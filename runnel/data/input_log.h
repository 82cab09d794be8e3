#pragma once

// The input of a stage that holds elements back (shuffle, windows, groups). Such a stage saves which elements it holds,
// by number, and reads them again: states of the input are kept for the oldest of them, never the elements.
#include <deque>
#include <functional>
#include <string>

#include "runnel/data/node.h"

namespace runnel::data {

class InputLog {
 public:
  // `every`: elements between two kept states. `oldest`: the number of the oldest element that is held back, or
  // pulled().
  InputLog(IteratorPtr input, int64_t every, std::function<int64_t()> oldest);

  // The element number pulled() before the call.
  bool pull(Item& out);
  int64_t pulled() const { return pulled_; }

  void save(StateWriter& out) const;
  // Tells of every element from the kept state up to where the stage was, with its number.
  void restore(StateReader& in, const std::function<void(int64_t number, Item& item)>& each);

 private:
  struct Kept {
    int64_t at;
    std::string state;
  };
  void keep();
  std::deque<Kept>::const_iterator needed() const;

  IteratorPtr input_;
  int64_t every_;
  std::function<int64_t()> oldest_;
  std::deque<Kept> kept_;
  int64_t pulled_ = 0;
};

}  // namespace runnel::data
