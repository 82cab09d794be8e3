#pragma once

// Internal: what keeps walks over the parts of layers from going in circles.
#include <algorithm>
#include <vector>

namespace runnel::keras {

class Layer;

// The walk called Walk is at this layer as long as the object lives. Models that track each other lead back to a layer
// that the walk is at already: it turns round there.
template <class Walk>
class WalkPath {
 public:
  explicit WalkPath(const Layer* layer) {
    is_circle_ = std::find(path().begin(), path().end(), layer) != path().end();
    path().push_back(layer);
  }
  ~WalkPath() { path().pop_back(); }
  WalkPath(const WalkPath&) = delete;
  WalkPath& operator=(const WalkPath&) = delete;
  bool is_circle() const { return is_circle_; }

 private:
  static std::vector<const Layer*>& path() {
    thread_local std::vector<const Layer*> layers;
    return layers;
  }
  bool is_circle_;
};

}  // namespace runnel::keras
