#pragma once

// The two kinds of datasets: Dataset<T...>, whose elements have C++ types, and AnyDataset, whose elements are known at
// run time only.
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/data/callables.h"
#include "runnel/data/iterator.h"
#include "runnel/data/nested.h"
#include "runnel/data/nodes.h"
#include "runnel/data/traced_pass.h"
#include "runnel/data/transformations.h"
#include "runnel/tensor/structure.h"

namespace runnel::data {

namespace detail {

// `for` over a dataset.
template <class... T>
class ForLoop {
 public:
  using value_type = ElementOf<T...>;
  struct End {};
  ForLoop(const NodePtr& node, SourceSite where) : traced_(node, where) {
    if (traced_.is_traced()) return;
    iterator_.emplace(AnyIterator(node));
    now_ = iterator_->next();
  }
  bool operator!=(End) { return traced_.is_traced() ? traced_.more() : now_.has_value(); }
  void operator++() {
    if (traced_.is_traced()) return;
    now_.reset();  // before the next one is made: its memory can be used again
    now_ = iterator_->next();
  }
  value_type operator*() {
    if (!traced_.is_traced()) return std::move(*now_);
    Item item;
    traced_.get(item);
    return to_value<value_type>(item);
  }

 private:
  TracedPass traced_;
  std::optional<Iterator<T...>> iterator_;
  std::optional<value_type> now_;
};

// The node of a dataset that the user reads at `where`.
template <class D>
NodePtr node_at(const D& dataset, const SourceSite& where) {
  return called_at(where, [&] { return dataset.node(); });
}

template <class D>
std::vector<NodePtr> nodes_of(const std::vector<D>& datasets) {
  std::vector<NodePtr> nodes;
  for (const D& d : datasets) nodes.push_back(d.node());
  return nodes;
}

// May a callable with this result decide about an element?
template <class R>
inline constexpr bool decides = std::same_as<R, bool> || std::convertible_to<R, Tensor>;
template <class R>
  requires std::is_arithmetic_v<R>
inline constexpr bool decides<R> = std::same_as<R, bool>;
RUNNEL_API bool decision(const Tensor& made, const char* who);
template <class R>
bool decision(const R& made, const char* who) {
  if constexpr (std::same_as<R, bool>) {
    return made;
  } else {
    return decision(static_cast<Tensor>(made), who);
  }
}

}  // namespace detail

// A dataset whose elements are structures known at run time only: what loaders by name give. `.as<Nest>()` has the
// transformations that are templates: interleave, window, scan, reduce.
class RUNNEL_API AnyDataset : public Transformations<AnyDataset> {
 public:
  using dataset_type = AnyDataset;
  AnyDataset() = default;  // to be assigned before it is used
  explicit AnyDataset(NodePtr node) : Transformations(std::move(node)) {}
  template <class... T>
  AnyDataset(const Dataset<T...>& typed) : Transformations(typed.node()) {}  // NOLINT: implicit

  static AnyDataset from_tensor_slices(const Nest& components, SourceSite where = SourceSite::current());
  static AnyDataset from_tensors(const Nest& element, SourceSite where = SourceSite::current());
  static AnyDataset zip(const std::vector<AnyDataset>& datasets, SourceSite where = SourceSite::current());

  AnyDataset map(std::function<Nest(const Nest&)> f, const MapOptions& options = {},
                 SourceSite where = SourceSite::current()) const;
  AnyDataset map(std::function<Nest(const Nest&)> f, int num_parallel_calls,
                 SourceSite where = SourceSite::current()) const {
    return map(std::move(f), MapOptions{.num_parallel_calls = num_parallel_calls}, where);
  }
  template <class P>
  AnyDataset filter(P predicate, SourceSite where = SourceSite::current()) const {
    using R = std::decay_t<std::invoke_result_t<P&, const Nest&>>;
    static_assert(detail::decides<R>, "filter takes a callable that gives a bool or a Tensor of one");
    return filter_items(
        [p = std::move(predicate)](Item& in) mutable { return detail::decision<R>(p(to_nest(in)), "filter"); }, where);
  }
  AnyDataset flat_map(std::function<AnyDataset(const Nest&)> f, SourceSite where = SourceSite::current()) const;

  // As an element of another dataset.
  std::vector<Tensor> components() const { return {to_variant(node())}; }
  CompositeSpecPtr composite_spec() const { return DatasetSpec::instance(); }
  static AnyDataset from_components(const CompositeSpecPtr&, const std::vector<Tensor>& parts) {
    return AnyDataset(from_variant(parts.at(0)));
  }

  // The same with elements of these C++ types; an Error where they are known not to be.
  template <class... T>
  Dataset<T...> as(SourceSite where = SourceSite::current()) const;

  AnyIterator make_iterator(SourceSite where = SourceSite::current()) const {
    return AnyIterator(detail::node_at(*this, where));
  }
  // for (const Nest& element : dataset)
  detail::ForLoop<Nest> begin(SourceSite where = SourceSite::current()) const {
    return detail::ForLoop<Nest>(detail::node_at(*this, where), where);
  }
  detail::ForLoop<Nest>::End end() const { return {}; }

 private:
  AnyDataset filter_items(Predicate p, const SourceSite& where) const;
};

template <class... T>
class Dataset : public Transformations<Dataset<T...>> {
  using Base = Transformations<Dataset<T...>>;

 public:
  using value_type = ElementOf<T...>;
  using dataset_type = Dataset;  // of a TFRecordDataset too: what its transformations give
  Dataset() = default;           // to be assigned before it is used
  explicit Dataset(NodePtr node) : Base(std::move(node)) {}
  // Lists of a class of their own are lists: the rows of csv() as std::vector<Tensor>.
  template <class E>
    requires(sizeof...(T) == 1 && !std::same_as<Dataset<E>, Dataset> && runnel::structure::is_vector<value_type> &&
             std::derived_from<E, value_type>)
  Dataset(const Dataset<E>& lists) : Base(lists.node()) {}  // NOLINT: implicit

  // f of every element. A runnel::function runs as its graph, and where all its ops work element by element, on whole
  // batches.
  template <class F>
  detail::dataset_of<detail::result_of<F, value_type>> map(F f, const MapOptions& options,
                                                           SourceSite where = SourceSite::current()) const {
    using Out = detail::dataset_of<detail::result_of<F, value_type>>;
    return Out(detail::called_at(
        where, [&] { return nodes::map(this->node(), detail::item_fn<value_type>(std::move(f)), options); }));
  }
  template <class F>
  auto map(F f, int num_parallel_calls = 0, SourceSite where = SourceSite::current()) const {
    return map(std::move(f), MapOptions{.num_parallel_calls = num_parallel_calls}, where);
  }

  // The elements for which p holds: it gives a bool or a Tensor of one.
  template <class P>
  Dataset filter(P p, SourceSite where = SourceSite::current()) const {
    return Dataset(
        detail::called_at(where, [&] { return nodes::filter(this->node(), predicate(std::move(p), "filter")); }));
  }
  // The elements before the first for which p does not hold.
  template <class P>
  Dataset take_while(P p, SourceSite where = SourceSite::current()) const {
    return Dataset(detail::called_at(
        where, [&] { return nodes::take_while(this->node(), predicate(std::move(p), "take_while")); }));
  }
  // The elements of the dataset that f makes of each element, one dataset after the other:
  //   files.flat_map([](Tensor path) { return TFRecordDataset(path); })
  template <class F>
  auto flat_map(F f, SourceSite where = SourceSite::current()) const {
    using Out = detail::expanded_by<F, value_type>;
    return Out(detail::called_at(
        where, [&] { return nodes::flat_map(this->node(), expansion(std::move(f)), Out::structure()); }));
  }
  // The same in turns: block_length elements of each of cycle_length datasets.
  template <class F>
  auto interleave(F f, const InterleaveOptions& options = {}, SourceSite where = SourceSite::current()) const {
    using Out = detail::expanded_by<F, value_type>;
    return Out(detail::called_at(
        where, [&] { return nodes::interleave(this->node(), expansion(std::move(f)), options, Out::structure()); }));
  }
  // f(state, element...) gives {new state, element}; the state is a structure of tensors.
  template <class S, class F>
  auto scan(const S& initial, F f, SourceSite where = SourceSite::current()) const {
    using R = std::decay_t<decltype(call_with_state(f, std::declval<S>(), std::declval<value_type>()))>;
    using E = std::decay_t<std::tuple_element_t<1, R>>;
    using State = detail::state_of<S, std::decay_t<std::tuple_element_t<0, R>>>;
    ScanFn made;
    if constexpr (detail::fixed_tensors<E>() >= 0) made.structure = detail::fixed_structure<E>();
    made.call = [f = std::move(f)](Item& state, Item& in, Item& out) mutable {
      Item copy = state;
      auto [next, element] = call_with_state(f, to_value<State>(copy), to_value<value_type>(in));
      from_value(State(next), state);
      from_value(element, out);
    };
    Item first;
    from_value(State(initial), first);
    return detail::dataset_of<E>(
        detail::called_at(where, [&] { return nodes::scan(this->node(), std::move(first), std::move(made)); }));
  }
  // {number, element}.
  Dataset<Tensor, value_type> enumerate(int64_t start = 0, SourceSite where = SourceSite::current()) const {
    return Dataset<Tensor, value_type>(detail::called_at(where, [&] {
      return nodes::zip({nodes::counter(start, 1), this->node()});
    }));
  }
  // Datasets of `size` successive elements; of a tuple, one dataset for each component.
  Dataset<Dataset<T>...> window(int64_t size, const WindowOptions& options = {},
                                SourceSite where = SourceSite::current()) const {
    return Dataset<Dataset<T>...>(detail::called_at(where, [&] { return nodes::window(this->node(), size, options); }));
  }
  // Collects elements by key_func(element), an integer, and hands each full window to reduce_func(key, dataset).
  template <class K, class F>
  auto group_by_window(K key_func, F reduce_func, int64_t window_size, SourceSite where = SourceSite::current()) const {
    using Out = typename std::decay_t<std::invoke_result_t<F&, int64_t, Dataset>>::dataset_type;
    auto reduce = [f = std::move(reduce_func)](int64_t k, NodePtr group) mutable {
      return f(k, Dataset(std::move(group))).node();
    };
    return Out(detail::called_at(where, [&] {
      return nodes::group_by_window(
          this->node(), key(std::move(key_func)), std::move(reduce), [window_size](int64_t) { return window_size; },
          Out::structure());
    }));
  }
  // Pads elements of similar length into one batch: bucket i has lengths below boundaries[i], the last one the rest.
  template <class L>
  Dataset bucket_by_sequence_length(L element_length_func, const std::vector<int64_t>& boundaries,
                                    const std::vector<int64_t>& batch_sizes, const PaddedBatchOptions& options = {},
                                    bool pad_to_bucket_boundary = false,
                                    SourceSite where = SourceSite::current()) const {
    return Dataset(detail::called_at(where, [&] {
      return nodes::bucket_by_sequence_length(this->node(), key(std::move(element_length_func)), boundaries,
                                              batch_sizes, options, pad_to_bucket_boundary);
    }));
  }
  // {class, element}: elements are left out at random until classes have the shares of target_dist.
  template <class K>
  Dataset<Tensor, value_type> rejection_resample(K class_func, const std::vector<double>& target_dist,
                                                 const std::vector<double>& initial_dist = {},
                                                 std::optional<int64_t> seed = {},
                                                 SourceSite where = SourceSite::current()) const {
    return Dataset<Tensor, value_type>(detail::called_at(where, [&] {
      return nodes::rejection_resample(this->node(), key(std::move(class_func)), target_dist, initial_dist, seed);
    }));
  }
  // Stacks elements whose first dimensions differ into RaggedTensors; scalars, which cannot differ, into vectors: of a
  // dataset of tuples R says which is which, as in ragged_batch<std::tuple<RaggedTensor, Tensor>>(n).
  template <class R = RaggedTensor>
  Dataset<R> ragged_batch(int64_t batch_size, bool drop_remainder = false,
                          SourceSite where = SourceSite::current()) const {
    return Dataset<R>(detail::called_at(where, [&] {
      return nodes::ragged_batch(this->node(), batch_size, drop_remainder, std::same_as<R, RaggedTensor>);
    }));
  }

  // f(... f(f(initial, first), second) ..., last): f takes the state and an element or its components. An Error where
  // the dataset is known never to end.
  template <class S, class F>
  auto reduce(S initial, F f, SourceSite where = SourceSite::current()) const {
    using R = std::decay_t<decltype(call_with_state(f, std::declval<S>(), std::declval<value_type>()))>;
    detail::state_of<S, R> state = std::move(initial);
    const NodePtr all = detail::called_at(where, [&] { return nodes::finite(this->node(), "reduce"); });
    Iterator<T...> it{AnyIterator(all)};
    while (auto element = it.next()) state = call_with_state(f, std::move(state), std::move(*element));
    return state;
  }

  Iterator<T...> make_iterator(SourceSite where = SourceSite::current()) const {
    return Iterator<T...>(AnyIterator(detail::node_at(*this, where)));
  }
  detail::ForLoop<T...> begin(SourceSite where = SourceSite::current()) const {
    return detail::ForLoop<T...>(detail::node_at(*this, where), where);
  }
  typename detail::ForLoop<T...>::End end() const { return {}; }

  // As an element of another dataset.
  std::vector<Tensor> components() const { return {to_variant(this->node())}; }
  CompositeSpecPtr composite_spec() const { return DatasetSpec::instance(); }
  static Dataset from_components(const CompositeSpecPtr&, const std::vector<Tensor>& parts) {
    return Dataset(from_variant(parts.at(0)));
  }
  // Of its elements, where the types alone say so.
  static const Structure* structure() {
    if constexpr (detail::fixed_tensors<value_type>() >= 0) {
      return detail::fixed_structure<value_type>();
    } else {
      return nullptr;
    }
  }

 private:
  template <class P>
  static Predicate predicate(P p, const char* who) {
    using R = detail::result_of<P, value_type>;
    static_assert(detail::decides<R>, "filter and take_while take a callable that gives a bool or a Tensor of one");
    return [p = std::move(p), who](Item& in) mutable {
      return detail::decision<R>(detail::call(p, to_value<value_type>(in)), who);
    };
  }
  template <class K>
  static KeyFn key(K k) {
    return [k = std::move(k)](Item& in) mutable -> int64_t {
      auto made = detail::call(k, to_value<value_type>(in));
      if constexpr (std::integral<decltype(made)>) {
        return static_cast<int64_t>(made);
      } else {
        const Tensor t = made;
        return t.dtype() == DType::int32 ? t.item<int32_t>() : t.item<int64_t>();
      }
    };
  }
  template <class F>
  static ExpandFn expansion(F f) {
    return [f = std::move(f)](Item& in) mutable { return detail::call(f, to_value<value_type>(in)).node(); };
  }
  template <class F, class S>
  static auto call_with_state(F& f, S&& state, value_type&& element) {
    if constexpr (detail::is_tuple<value_type> && std::is_invocable_v<F&, S, T...>) {
      return std::apply([&](auto&&... parts) { return f(std::forward<S>(state), std::move(parts)...); }, element);
    } else {
      return f(std::forward<S>(state), std::move(element));
    }
  }
};

template <class... T>
Dataset<T...> AnyDataset::as(SourceSite where) const {
  using E = ElementOf<T...>;
  const NodePtr node = detail::called_at(where, [&] {
    if constexpr (detail::fixed_tensors<E>() >= 0)
      detail::require_structure(nodes::element_spec(this->node()), detail::fixed_structure<E>());
    return this->node();
  });
  return Dataset<T...>(node);
}

}  // namespace runnel::data
