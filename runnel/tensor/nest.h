#pragma once

// The one structure type: what functions take and return, what datasets yield, what models are called with. A leaf,
// a composite, or a tuple, list or map of structures; like tf.nest.

#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/base/asked.h"
#include "runnel/tensor/composite.h"
#include "runnel/tensor/structure.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

enum class NestKind : uint8_t { leaf, tuple, list, map, sparse, ragged, slices, composite };

// What is fixed about a composite that is made elsewhere (TensorArray: its dtype and element shape).
class RUNNEL_API CompositeSpec {
 public:
  virtual ~CompositeSpec() = default;
  virtual std::string describe() const = 0;  // "a TensorArray of float32"
  // May values of this and of the other description stand at one place of a structure?
  virtual bool fits(const CompositeSpec& other) const = 0;
};
using CompositeSpecPtr = std::shared_ptr<const CompositeSpec>;

// A type that takes part in structures: tensors and what is fixed about them, and back.
template <class T>
concept Composite = requires(const T& value, const CompositeSpecPtr& spec, const std::vector<Tensor>& parts) {
  { value.components() } -> std::same_as<std::vector<Tensor>>;
  { value.composite_spec() } -> std::same_as<CompositeSpecPtr>;
  { T::from_components(spec, parts) } -> std::same_as<T>;
};

namespace nest::detail {
[[noreturn]] RUNNEL_API void wrong_kind(NestKind asked, NestKind got, size_t size, const SourceSite& where);
[[noreturn]] RUNNEL_API void no_entry(const AskedName& key, const std::vector<std::string>& keys);
[[noreturn]] RUNNEL_API void no_item(const AskedPlace& i, NestKind kind, size_t size);
[[noreturn]] RUNNEL_API void leaf_count(size_t needed, size_t given, const SourceSite& where);
[[noreturn]] RUNNEL_API void differ(const std::string& path, const std::string& a, const std::string& b,
                                    const SourceSite& where);
RUNNEL_API std::string describe(NestKind kind, size_t size, const std::vector<std::string>& keys);
// ['key'], [0] or .values: one step of a path.
RUNNEL_API std::string step(NestKind kind, size_t i, const std::vector<std::string>& keys);
}  // namespace nest::detail

// Leaf is Tensor for values; signatures have structures of specs.
template <class Leaf>
class NestOf {
 public:
  NestOf() : kind_(NestKind::tuple) {}                                  // the empty tuple
  NestOf(Leaf leaf) : kind_(NestKind::leaf), leaf_(std::move(leaf)) {}  // NOLINT: implicit
  template <class... Ts>
  NestOf(const std::tuple<Ts...>& parts) : kind_(NestKind::tuple) {  // NOLINT
    std::apply([this](const auto&... each) { (items_.emplace_back(each), ...); }, parts);
  }
  template <class A, class B>
  NestOf(const std::pair<A, B>& parts) : kind_(NestKind::tuple) {  // NOLINT
    items_.emplace_back(parts.first);
    items_.emplace_back(parts.second);
  }
  template <class T>
    requires std::constructible_from<NestOf, const T&>
  NestOf(const std::vector<T>& parts) : kind_(NestKind::list) {  // NOLINT
    for (const T& part : parts) items_.emplace_back(part);
  }
  template <class T>
  NestOf(const std::map<std::string, T>& parts) : kind_(NestKind::map) {  // NOLINT
    for (const auto& [key, part] : parts) {
      keys_.push_back(key);
      items_.emplace_back(part);
    }
  }
  NestOf(const SparseTensor& s)  // NOLINT
    requires std::same_as<Leaf, Tensor>
      : kind_(NestKind::sparse), items_{s.indices, s.values, s.dense_shape} {}
  NestOf(const IndexedSlices& s)  // NOLINT
    requires std::same_as<Leaf, Tensor>
      : kind_(NestKind::slices), items_{s.values, s.indices} {
    if (s.dense_shape.defined()) items_.emplace_back(s.dense_shape);
  }
  NestOf(const RaggedTensor& r)  // NOLINT
    requires std::same_as<Leaf, Tensor>
      : kind_(NestKind::ragged) {
    if (r.ragged_rank() == 1) {
      items_.emplace_back(r.flat_values());
    } else {
      items_.emplace_back(r.ragged_values());
    }
    items_.emplace_back(r.row_splits());
  }

  template <Composite T>
  NestOf(const T& value)  // NOLINT
    requires std::same_as<Leaf, Tensor>
      : kind_(NestKind::composite), spec_(value.composite_spec()) {
    for (const Tensor& part : value.components()) items_.emplace_back(part);
  }

  static NestOf tuple(std::vector<NestOf> items) { return NestOf(NestKind::tuple, std::move(items), {}); }
  static NestOf list(std::vector<NestOf> items) { return NestOf(NestKind::list, std::move(items), {}); }
  static NestOf map(const std::map<std::string, NestOf>& entries) { return NestOf(entries); }

  NestKind kind() const { return kind_; }
  bool is_leaf() const { return kind_ == NestKind::leaf; }
  const Leaf& leaf(SourceSite where = SourceSite::current()) const {
    if (!is_leaf()) nest::detail::wrong_kind(NestKind::leaf, kind_, size(), where);
    return leaf_;
  }
  size_t size() const { return items_.size(); }
  const std::vector<NestOf>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }  // of a map, sorted
  const CompositeSpecPtr& spec() const { return spec_; }          // of a composite made elsewhere, else null
  const NestOf& operator[](const AskedPlace& i) const {
    if (!std::in_range<size_t>(i.place) || static_cast<size_t>(i.place) >= items_.size()) {
      nest::detail::no_item(i, kind_, size());
    }
    return items_[static_cast<size_t>(i.place)];
  }
  const NestOf& operator[](const AskedName& key) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == key.name) return items_[i];
    }
    nest::detail::no_entry(key, keys_);
  }

  // As a C++ type: Leaf, std::tuple, std::pair, std::vector, std::map<std::string, T>, or a composite.
  template <class T>
  T as(SourceSite where = SourceSite::current()) const {
    if constexpr (std::same_as<T, NestOf>) {
      return *this;
    } else if constexpr (std::same_as<T, Leaf>) {
      return leaf(where);
    } else if constexpr (structure::is_tuple<T>) {
      if (kind_ != NestKind::tuple || size() != std::tuple_size_v<T>) {
        nest::detail::wrong_kind(NestKind::tuple, kind_, size(), where);
      }
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return T(items_[I].template as<std::tuple_element_t<I, T>>(where)...);
      }(std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (structure::is_vector<T>) {
      require(NestKind::list, where);
      T out;
      for (const NestOf& item : items_) out.push_back(item.template as<typename T::value_type>(where));
      return out;
    } else if constexpr (structure::is_map<T>) {
      require(NestKind::map, where);
      T out;
      for (size_t i = 0; i < size(); ++i) out.emplace(keys_[i], items_[i].template as<typename T::mapped_type>(where));
      return out;
    } else if constexpr (std::same_as<T, SparseTensor>) {
      require(NestKind::sparse, where);
      return {items_[0].leaf(), items_[1].leaf(), items_[2].leaf()};
    } else if constexpr (std::same_as<T, IndexedSlices>) {
      require(NestKind::slices, where);
      return {items_[0].leaf(), items_[1].leaf(), size() > 2 ? items_[2].leaf() : Tensor()};
    } else if constexpr (Composite<T>) {
      require(NestKind::composite, where);
      std::vector<Tensor> parts;
      for (const NestOf& item : items_) parts.push_back(item.leaf());
      return T::from_components(spec_, parts);
    } else {
      static_assert(std::same_as<T, RaggedTensor>, "a structure has no such C++ type");
      require(NestKind::ragged, where);
      const Tensor& splits = items_[1].leaf();
      if (items_[0].is_leaf()) return RaggedTensor::from_nested_row_splits(items_[0].leaf(), {splits});
      const RaggedTensor inner = items_[0].template as<RaggedTensor>();
      std::vector<Tensor> all{splits};
      all.insert(all.end(), inner.nested_row_splits().begin(), inner.nested_row_splits().end());
      return RaggedTensor::from_nested_row_splits(inner.flat_values(), all);
    }
  }

  // The same structure with items of another leaf type; `items` in order.
  template <class Other>
  NestOf<Other> rebuilt(std::vector<NestOf<Other>> items) const {
    NestOf<Other> out(kind_, std::move(items), keys_);
    out.spec_ = spec_;
    return out;
  }

 private:
  template <class>
  friend class NestOf;
  NestOf(NestKind kind, std::vector<NestOf> items, std::vector<std::string> keys)
      : kind_(kind), items_(std::move(items)), keys_(std::move(keys)) {}
  void require(NestKind kind, const SourceSite& where) const {
    if (kind_ != kind) nest::detail::wrong_kind(kind, kind_, size(), where);
  }

  NestKind kind_;
  Leaf leaf_{};
  std::vector<NestOf> items_;
  std::vector<std::string> keys_;
  CompositeSpecPtr spec_;
};

using Nest = NestOf<Tensor>;

namespace nest {
namespace detail {

template <class Leaf, class F>
void visit(const NestOf<Leaf>& n, const std::string& path, const F& f) {
  if (n.is_leaf()) return f(path, n.leaf());
  for (size_t i = 0; i < n.size(); ++i) visit(n.items()[i], path + step(n.kind(), i, n.keys()), f);
}

template <class A, class B>
void check_same(const NestOf<A>& a, const NestOf<B>& b, const std::string& path, const SourceSite& where) {
  if (a.kind() != b.kind() || a.size() != b.size() || a.keys() != b.keys()) {
    differ(path, describe(a.kind(), a.size(), a.keys()), describe(b.kind(), b.size(), b.keys()), where);
  }
  if (a.spec() && !a.spec()->fits(*b.spec())) differ(path, a.spec()->describe(), b.spec()->describe(), where);
  for (size_t i = 0; i < a.size(); ++i) {
    check_same(a.items()[i], b.items()[i], path + step(a.kind(), i, a.keys()), where);
  }
}

// The structure of `n` with next() for each leaf, in order.
template <class Out, class Leaf, class Next>
NestOf<Out> fill(const NestOf<Leaf>& n, Next& next) {
  if (n.is_leaf()) return NestOf<Out>(next());
  std::vector<NestOf<Out>> items;
  for (const NestOf<Leaf>& item : n.items()) items.push_back(fill<Out>(item, next));
  return n.template rebuilt<Out>(std::move(items));
}

template <class Leaf>
void collect(const NestOf<Leaf>& n, std::vector<Leaf>& leaves) {
  if (n.is_leaf()) {
    leaves.push_back(n.leaf());
  } else {
    for (const NestOf<Leaf>& item : n.items()) collect(item, leaves);
  }
}

}  // namespace detail

// The leaves in order: maps by key, composites by component.
template <class Leaf>
std::vector<Leaf> flatten(const NestOf<Leaf>& n) {
  std::vector<Leaf> leaves;
  detail::collect(n, leaves);
  return leaves;
}

// How each leaf is reached, in the order of flatten: "['image'][0]"; "" for a leaf alone.
template <class Leaf>
std::vector<std::string> paths(const NestOf<Leaf>& n) {
  std::vector<std::string> all;
  detail::visit(n, "", [&](const std::string& path, const Leaf&) { all.push_back(path); });
  return all;
}

// The structure of `like` with other leaves; an Error unless there are just as many.
template <class Leaf, class Out>
NestOf<Out> pack(const NestOf<Leaf>& like, const std::vector<Out>& leaves, SourceSite where = SourceSite::current()) {
  size_t needed = 0;
  detail::visit(like, "", [&](const std::string&, const Leaf&) { ++needed; });
  if (needed != leaves.size()) detail::leaf_count(needed, leaves.size(), where);
  size_t at = 0;
  auto next = [&]() -> const Out& { return leaves[at++]; };
  return detail::fill<Out>(like, next);
}

// An Error naming the first path at which the structures differ.
template <class A, class B>
void assert_same_structure(const NestOf<A>& a, const NestOf<B>& b, SourceSite where = SourceSite::current()) {
  detail::check_same(a, b, "", where);
}

// f of each leaf, or of the leaves at the same place of several structures, in the same structure.
template <class F, class Leaf, class... More>
auto map_structure(F f, const NestOf<Leaf>& first, const NestOf<More>&... more) {
  (assert_same_structure(first, more), ...);
  auto leaves = std::tuple{flatten(first), flatten(more)...};
  using Out = std::remove_cvref_t<decltype(f(std::declval<const Leaf&>(), std::declval<const More&>()...))>;
  size_t at = 0;
  auto next = [&] {
    const size_t i = at++;
    return std::apply([&](const auto&... each) { return f(each[i]...); }, leaves);
  };
  return detail::fill<Out>(first, next);
}

}  // namespace nest
}  // namespace runnel
