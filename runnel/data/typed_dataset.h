#pragma once

// The two kinds of datasets: Dataset<T...>, whose elements have C++ types, and AnyDataset, whose elements are known at
// run time only.
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

namespace runnel::data {

// A dataset whose elements are structures known at run time only: what loaders by name give.
class RUNNEL_API AnyDataset : public Transformations<AnyDataset> {
 public:
  using dataset_type = AnyDataset;
  explicit AnyDataset(NodePtr node) : Transformations(std::move(node)) {}
  template <class... T>
  AnyDataset(const Dataset<T...>& typed) : Transformations(typed.node()) {}  // NOLINT: implicit

  static AnyDataset from_tensor_slices(const Nest& components);
  static AnyDataset from_tensors(const Nest& element);
  static AnyDataset zip(const std::vector<AnyDataset>& datasets);

  AnyDataset map(std::function<Nest(const Nest&)> f, const MapOptions& options = {}) const;

  AnyDataset filter(std::function<bool(const Nest&)> predicate) const;
  AnyDataset flat_map(std::function<AnyDataset(const Nest&)> f) const;

  // As an element of another dataset.
  std::vector<Tensor> components() const { return {to_variant(node())}; }
  CompositeSpecPtr composite_spec() const { return DatasetSpec::instance(); }
  static AnyDataset from_components(const CompositeSpecPtr&, const std::vector<Tensor>& parts) {
    return AnyDataset(from_variant(parts.at(0)));
  }

  // The same with elements of these C++ types; an Error where they are known not to be.
  template <class... T>
  Dataset<T...> as() const;

  AnyIterator make_iterator() const { return AnyIterator(node()); }
};

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

}  // namespace detail

template <class... T>
class Dataset : public Transformations<Dataset<T...>> {
  using Base = Transformations<Dataset<T...>>;

 public:
  using value_type = ElementOf<T...>;
  using dataset_type = Dataset;  // of a TFRecordDataset too: what its transformations give
  explicit Dataset(NodePtr node) : Base(std::move(node)) {}

  // f of every element. A runnel::function runs as its graph, and where all its ops work element by element, on whole
  // batches.
  template <class F>
  detail::dataset_of<detail::result_of<F, value_type>> map(F f, const MapOptions& options) const {
    using Out = detail::dataset_of<detail::result_of<F, value_type>>;
    return Out(nodes::map(this->node(), detail::item_fn<value_type>(std::move(f)), options));
  }
  template <class F>
  auto map(F f, int num_parallel_calls = 0) const {
    return map(std::move(f), MapOptions{.num_parallel_calls = num_parallel_calls});
  }

  // The elements for which p holds: it gives a bool or a Tensor of one.
  template <class P>
  Dataset filter(P p) const {
    return Dataset(nodes::filter(this->node(), predicate(std::move(p))));
  }
  // The elements before the first for which p does not hold.
  template <class P>
  Dataset take_while(P p) const {
    return Dataset(nodes::take_while(this->node(), predicate(std::move(p))));
  }
  // The elements of the dataset that f makes of each element, one dataset after the other:
  //   files.flat_map([](Tensor path) { return TFRecordDataset(path); })
  template <class F>
  auto flat_map(F f) const {
    using Out = typename detail::result_of<F, value_type>::dataset_type;
    return Out(nodes::flat_map(this->node(), expansion(std::move(f)), Out::structure()));
  }
  // The same in turns: block_length elements of each of cycle_length datasets.
  template <class F>
  auto interleave(F f, const InterleaveOptions& options = {}) const {
    using Out = typename detail::result_of<F, value_type>::dataset_type;
    return Out(nodes::interleave(this->node(), expansion(std::move(f)), options, Out::structure()));
  }
  // f(state, element...) gives {new state, element}; the state is a structure of tensors.
  template <class S, class F>
  auto scan(const S& initial, F f) const {
    using R = std::decay_t<decltype(call_with_state(f, std::declval<S>(), std::declval<value_type>()))>;
    using E = std::decay_t<std::tuple_element_t<1, R>>;
    ScanFn made;
    if constexpr (detail::fixed_tensors<E>() >= 0) made.structure = detail::fixed_structure<E>();
    made.call = [f = std::move(f)](Item& state, Item& in, Item& out) mutable {
      Item copy = state;
      auto [next, element] = call_with_state(f, to_value<S>(copy), to_value<value_type>(in));
      from_value(S(next), state);
      from_value(element, out);
    };
    Item first;
    from_value(initial, first);
    return detail::dataset_of<E>(nodes::scan(this->node(), std::move(first), std::move(made)));
  }
  // {number, element}.
  Dataset<Tensor, value_type> enumerate(int64_t start = 0) const {
    return Dataset<Tensor, value_type>(nodes::zip({nodes::counter(start, 1), this->node()}));
  }
  // Datasets of `size` successive elements; of a tuple, one dataset for each component.
  Dataset<Dataset<T>...> window(int64_t size, const WindowOptions& options = {}) const {
    return Dataset<Dataset<T>...>(nodes::window(this->node(), size, options));
  }
  // Collects elements by key_func(element), an integer, and hands each full window to reduce_func(key, dataset).
  template <class K, class F>
  auto group_by_window(K key_func, F reduce_func, int64_t window_size) const {
    using Out = typename std::decay_t<std::invoke_result_t<F&, int64_t, Dataset>>::dataset_type;
    return Out(nodes::group_by_window(
        this->node(), key(std::move(key_func)),
        [f = std::move(reduce_func)](int64_t k, NodePtr group) mutable {
          return f(k, Dataset(std::move(group))).node();
        },
        [window_size](int64_t) { return window_size; }, Out::structure()));
  }
  // Pads elements of similar length into one batch: bucket i has lengths below boundaries[i], the last one the rest.
  template <class L>
  Dataset bucket_by_sequence_length(L element_length_func, const std::vector<int64_t>& boundaries,
                                    const std::vector<int64_t>& batch_sizes, const PaddedBatchOptions& options = {},
                                    bool pad_to_bucket_boundary = false) const {
    return Dataset(nodes::bucket_by_sequence_length(this->node(), key(std::move(element_length_func)), boundaries,
                                                    batch_sizes, options, pad_to_bucket_boundary));
  }
  // {class, element}: elements are left out at random until classes have the shares of target_dist.
  template <class K>
  Dataset<Tensor, value_type> rejection_resample(K class_func, const std::vector<double>& target_dist,
                                                 const std::vector<double>& initial_dist = {},
                                                 std::optional<int64_t> seed = {}) const {
    return Dataset<Tensor, value_type>(
        nodes::rejection_resample(this->node(), key(std::move(class_func)), target_dist, initial_dist, seed));
  }
  // Stacks elements whose first dimensions differ into RaggedTensors; scalars into vectors.
  template <class R = RaggedTensor>
  Dataset<R> ragged_batch(int64_t batch_size, bool drop_remainder = false) const {
    return Dataset<R>(nodes::ragged_batch(this->node(), batch_size, drop_remainder));
  }

  // f(... f(f(initial, first), second) ..., last): f takes the state and an element or its components.
  template <class S, class F>
  S reduce(S initial, F f) const {
    S state = std::move(initial);
    Iterator<T...> it = make_iterator();
    while (auto element = it.next()) state = call_with_state(f, std::move(state), std::move(*element));
    return state;
  }

  Iterator<T...> make_iterator() const { return Iterator<T...>(AnyIterator(this->node())); }
  detail::ForLoop<T...> begin(SourceSite where = SourceSite::current()) const {
    return detail::ForLoop<T...>(this->node(), where);
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
  static Predicate predicate(P p) {
    return [p = std::move(p)](Item& in) mutable -> bool {
      return static_cast<bool>(detail::call(p, to_value<value_type>(in)));
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
Dataset<T...> AnyDataset::as() const {
  using E = ElementOf<T...>;
  if constexpr (detail::fixed_tensors<E>() >= 0) {
    const ElementSpec spec = element_spec();
    const bool unknown = spec.is_leaf() && spec.leaf().dtype == DType::invalid;
    const Structure* mine = structure_of(spec);
    if (!unknown && mine != detail::fixed_structure<E>()) detail::wrong_structure(detail::fixed_structure<E>(), mine);
  }
  return Dataset<T...>(node());
}

}  // namespace runnel::data
