#pragma once

// Internal: what notices that a part of a checkpoint has ended, so that it is not left out of the next save in silence.
#include <set>
#include <string>
#include <unordered_set>

#include "runnel/tensor/trackable.h"

namespace runnel::train {

// A node whose parts the user named: of a checkpoint, or of a list or dict given to one. A part that was handed over by
// its address takes its edge along when it ends; the name stays here.
class GivenParts {
 public:
  virtual ~GivenParts() = default;
  std::set<std::string> given;  // the names; none is ever taken away

  // An Error that names a part of `node` that has ended, also one of a list or dict in it.
  static void require_all(const Trackable& node);

 private:
  static void require_all(const Trackable& node, const std::string& path, std::unordered_set<const Trackable*>& met);
};

class GivenList : public TrackableList, public GivenParts {
 private:
  void part_ended() override {}  // the others keep their numbers
};

class GivenDict : public TrackableDict, public GivenParts {};

}  // namespace runnel::train
