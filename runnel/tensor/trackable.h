#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

// An object whose state can be saved and found again: a node with named edges to its parts, which are objects or
// variables. The names along a path are the key of a variable in a checkpoint ("model/dense1/kernel").
class RUNNEL_API Trackable {
 public:
  struct Edge {
    std::string name;
    Trackable* object = nullptr;  // null for a variable
    Tensor variable;              // the handle of a variable
  };

  Trackable() = default;
  virtual ~Trackable() = default;
  Trackable(const Trackable&) = delete;
  Trackable& operator=(const Trackable&) = delete;

  // In the order in which they were made. One part may be reached under two names.
  const std::vector<Edge>& edges() const { return edges_; }
  const Edge* find_edge(std::string_view name) const;

 protected:
  // The part must live as long as this object: a member of it, or kept by `keep`. A name that is taken is an Error
  // unless it leads to the same part.
  void track(const std::string& name, Trackable& part);
  void track(const std::string& name, std::shared_ptr<Trackable> keep);
  void track_variable(const std::string& name, const Tensor& handle);
  void untrack(std::string_view name);

 private:
  void add(Edge edge);

  std::vector<Edge> edges_;
  std::vector<std::shared_ptr<Trackable>> kept_;
};

// Parts by number, as TensorFlow tracks a Python list: edges "0", "1", ...
class RUNNEL_API TrackableList : public Trackable {
 public:
  void append(std::shared_ptr<Trackable> part) { track(std::to_string(edges().size()), std::move(part)); }
  void append(Trackable& part) { track(std::to_string(edges().size()), part); }
  void append_variable(const Tensor& handle) { track_variable(std::to_string(edges().size()), handle); }
};

}  // namespace runnel
