#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "runnel/base/source_site.h"
#include "runnel/data/item.h"
#include "runnel/data/node_ptr.h"

namespace runnel::data {

class Pipeline;  // data/pipeline.h

// One pass over a dataset. Copies are the same pass. Used by one thread at a time; when the last copy goes, the threads
// that work for it are stopped and joined. A node of the object graph: track() takes it as a part of an object, and
// checkpoints keep where it stands.
class RUNNEL_API AnyIterator {
 public:
  explicit AnyIterator(NodePtr node);

  // The next element, or nothing at the end. An Error of a stage comes out here, in the place of the element it befell;
  // the call after it goes on with the next one.
  std::optional<Nest> next();
  bool next(Item& out);
  // The next element; at the end an Error (out_of_range). In a function that is traced it becomes an op of its graph:
  // each run of the function takes the next one.
  void get_next(Item& out, SourceSite where = SourceSite::current()) const;
  const Tensor& handle() const;  // refers to this iterator

  // Where this pass stands: positions and seeds, a few kilobytes. An iterator of the same pipeline, in this program or
  // another, that restores it gives just the elements that this one would give from here on. Bytes that are no state of
  // this pipeline are an Error, and the iterator stays where it is.
  std::string save() const;
  void restore(std::string_view state);

  // A table: what each stage does, how fast, and which one holds up the rest.
  std::string explain() const;
  const Pipeline& pipeline() const;

  struct Impl;

 private:
  const std::shared_ptr<Impl>& impl(const SourceSite& where = SourceSite()) const;  // an Error where it was moved from

  std::shared_ptr<Impl> impl_;
  Tensor handle_;
};

// What an element of Dataset<T...> is: T itself, or a tuple of several.
namespace detail {
template <class... T>
struct ElementType {
  using type = std::tuple<T...>;
};
template <class T>
struct ElementType<T> {
  using type = T;
};
}  // namespace detail
template <class... T>
using ElementOf = typename detail::ElementType<T...>::type;

template <class... T>
class Iterator {
 public:
  using value_type = ElementOf<T...>;
  explicit Iterator(AnyIterator any) : any_(std::move(any)) {}

  std::optional<value_type> next() {
    Item item;
    if (!any_.next(item)) return std::nullopt;
    return to_value<value_type>(item);
  }
  value_type get_next(SourceSite where = SourceSite::current()) {
    Item item;
    any_.get_next(item, where);
    return to_value<value_type>(item);
  }
  std::string save() const { return any_.save(); }
  void restore(std::string_view state) { any_.restore(state); }
  std::string explain() const { return any_.explain(); }
  const AnyIterator& any() const { return any_; }
  const Tensor& handle() const { return any_.handle(); }

 private:
  AnyIterator any_;
};

}  // namespace runnel::data
