#pragma once

// Input pipelines, as tf.data.
//
//   auto train = data::from_tensor_slices(images, labels)
//                    .shuffle(60000)
//                    .map([](Tensor x, Tensor y) { return std::tuple{cast(x, float32) / 255, y}; }, data::AUTOTUNE)
//                    .batch(50)
//                    .prefetch(data::AUTOTUNE);
//   for (auto [x, y] : train) step(x, y);
//
// A dataset is a description: cheap to copy, never changed. Each `for` is a pass of its own. Callables should depend on
// their arguments alone: they may be called in another order than elements come out, on other threads where parallel
// calls were asked for, and again after a restore. Random ops inside draw numbers keyed by the stage, the pass and the
// element.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/data/iterator.h"
#include "runnel/data/nodes.h"
#include "runnel/function/function.h"

namespace runnel::data {

template <class... T>
class Dataset;
class AnyDataset;

namespace detail {

// The dataset of what a callable gives: a tuple or pair has several components, a number is a tensor.
template <class R>
struct DatasetOf {
  using type = Dataset<std::conditional_t<Number<R>, Tensor, R>>;
};
template <class... T>
struct DatasetOf<std::tuple<T...>> {
  using type = Dataset<T...>;
};
template <class A, class B>
struct DatasetOf<std::pair<A, B>> {
  using type = Dataset<A, B>;
};
template <class R>
using dataset_of = typename DatasetOf<std::decay_t<R>>::type;

template <class F>
inline constexpr bool is_traced = false;
template <class F>
inline constexpr bool is_traced<TracedFunction<F>> = true;

// f of an element: of its components where it takes them, else of the element as a whole.
template <class F, class E>
inline constexpr bool takes_parts = false;
template <class F, class... T>
inline constexpr bool takes_parts<F, std::tuple<T...>> = std::is_invocable_v<F&, T...>;
template <class F, class E>
decltype(auto) call(F& f, E&& element) {
  if constexpr (takes_parts<F, std::decay_t<E>>) {
    return std::apply(f, std::forward<E>(element));
  } else {
    return f(std::forward<E>(element));
  }
}
template <class F, class E>
using result_of = std::decay_t<decltype(call(std::declval<F&>(), std::declval<E>()))>;

template <class E>
inline constexpr size_t plain_tensors = std::same_as<E, Tensor> ? 1 : 0;
template <class... T>
inline constexpr size_t plain_tensors<std::tuple<T...>> = (std::same_as<T, Tensor> && ...) ? sizeof...(T) : 0;

template <class E, class F>
ItemFn item_fn(F f) {
  using R = result_of<F, E>;
  ItemFn made;
  if constexpr (is_traced<F>) {
    made.thread_safe = true;
    if constexpr (constexpr size_t n = plain_tensors<E>; n > 0) {
      made.vectorises = [f](const std::vector<TensorSpec>& element) {
        return [&]<size_t... I>(std::index_sequence<I...>) {
          return is_elementwise(f.get_concrete_function(element[I]...));
        }(std::make_index_sequence<n>());
      };
    }
  }
  if constexpr (fixed_leaves<R>() >= 0) {
    made.structure = fixed_structure<R>();
  } else if constexpr (Number<R>) {
    made.structure = fixed_structure<Tensor>();
  }
  made.call = [f = std::move(f)](Item& in, Item& out) mutable { from_value(call(f, to_value<E>(in)), out); };
  return made;
}

}  // namespace detail

// What datasets of all kinds have; Self is what they give back.
template <class Self>
class Transformations {
 public:
  // Stacks this many successive elements; the last batch may be smaller.
  Self batch(int64_t batch_size, bool drop_remainder = false) const {
    return batch(batch_size, BatchOptions{.drop_remainder = drop_remainder});
  }
  Self batch(int64_t batch_size, const BatchOptions& options) const {
    return Self(nodes::batch(node(), batch_size, options));
  }
  // Random order, as from a buffer of that many elements. Over a source in memory it is a permutation and holds
  // nothing.
  Self shuffle(int64_t buffer_size, const ShuffleOptions& options = {}) const {
    return Self(nodes::shuffle(node(), buffer_size, options));
  }
  Self shuffle(int64_t buffer_size, int64_t seed) const { return shuffle(buffer_size, ShuffleOptions{.seed = seed}); }
  Self repeat(int64_t count = -1) const { return Self(nodes::repeat(node(), count)); }
  Self take(int64_t count) const { return Self(nodes::take(node(), count)); }
  Self skip(int64_t count) const { return Self(nodes::skip(node(), count)); }
  // Every num_shards-th element, from number `index` on.
  Self shard(int64_t num_shards, int64_t index) const { return Self(nodes::shard(node(), num_shards, index)); }
  // Computes that many elements ahead of the consumer, on a thread of its own.
  Self prefetch(int64_t buffer_size) const { return Self(nodes::prefetch(node(), buffer_size)); }
  Self with_options(const DatasetOptions& options) const { return Self(nodes::with_options(node(), options)); }
  Self concatenate(const Self& other) const { return Self(nodes::concatenate(node(), other.node())); }

  // Number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.
  int64_t cardinality() const { return node()->cardinality(); }
  // What elements look like. Of a map with a plain callable it is found by tracing one call.
  ElementSpec element_spec() const { return node()->element_spec(); }
  // A table of the latest pass: what each stage does, how fast, what AUTOTUNE chose, which stage holds up the rest.
  std::string explain() const {
    const std::lock_guard lock(node()->last_mutex);
    return node()->last ? node()->last->explain() : "no pass was made yet\n";
  }
  template <class F>
  auto apply(F&& f) const {
    return std::forward<F>(f)(static_cast<const Self&>(*this));
  }
  const NodePtr& node() const { return node_; }

 protected:
  explicit Transformations(NodePtr node) : node_(std::move(node)) {}

 private:
  NodePtr node_;
};

// A dataset whose elements are structures known at run time only: what loaders by name give.
class RUNNEL_API AnyDataset : public Transformations<AnyDataset> {
 public:
  explicit AnyDataset(NodePtr node) : Transformations(std::move(node)) {}
  template <class... T>
  AnyDataset(const Dataset<T...>& typed) : Transformations(typed.node()) {}  // NOLINT: implicit

  static AnyDataset from_tensor_slices(const Nest& components);
  static AnyDataset from_tensors(const Nest& element);
  static AnyDataset zip(const std::vector<AnyDataset>& datasets);

  AnyDataset map(std::function<Nest(const Nest&)> f, const MapOptions& options = {}) const;

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
  explicit ForLoop(const NodePtr& node) : iterator_(AnyIterator(node)) { advance(); }
  bool operator!=(End) const { return now_.has_value(); }
  void operator++() { advance(); }
  value_type& operator*() { return *now_; }

 private:
  void advance() {
    now_.reset();  // before the next one is made: its memory can be used again
    now_ = iterator_.next();
  }
  Iterator<T...> iterator_;
  std::optional<value_type> now_;
};

}  // namespace detail

template <class... T>
class Dataset : public Transformations<Dataset<T...>> {
  using Base = Transformations<Dataset<T...>>;

 public:
  using value_type = ElementOf<T...>;
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

  // f(... f(f(initial, first), second) ..., last): f takes the state and an element or its components.
  template <class S, class F>
  S reduce(S initial, F f) const {
    S state = std::move(initial);
    Iterator<T...> it = make_iterator();
    while (auto element = it.next()) {
      if constexpr (sizeof...(T) > 1 && std::is_invocable_v<F&, S, T...>) {
        state = std::apply([&](auto&... parts) { return f(std::move(state), std::move(parts)...); }, *element);
      } else {
        state = f(std::move(state), std::move(*element));
      }
    }
    return state;
  }

  Iterator<T...> make_iterator() const { return Iterator<T...>(AnyIterator(this->node())); }
  detail::ForLoop<T...> begin() const { return detail::ForLoop<T...>(this->node()); }
  typename detail::ForLoop<T...>::End end() const { return {}; }
};

template <class... T>
Dataset<T...> AnyDataset::as() const {
  using E = ElementOf<T...>;
  if constexpr (detail::fixed_leaves<E>() >= 0) {
    const ElementSpec spec = element_spec();
    const bool unknown = spec.is_leaf() && spec.leaf().dtype == DType::invalid;
    const Structure* mine = structure_of(spec);
    if (!unknown && mine != detail::fixed_structure<E>()) detail::wrong_structure(detail::fixed_structure<E>(), mine);
  }
  return Dataset<T...>(node());
}

// One element per row of the first dimension, which all components share: a tensor, several, or a structure.
inline Dataset<Tensor> from_tensor_slices(const Tensor& tensor) {
  Item item;
  from_value(tensor, item);
  return Dataset<Tensor>(nodes::tensor_slices(std::move(item)));
}
template <class S>
  requires(!std::convertible_to<const S&, Tensor>)
detail::dataset_of<S> from_tensor_slices(const S& components) {
  Item item;
  from_value(components, item);
  return detail::dataset_of<S>(nodes::tensor_slices(std::move(item)));
}
template <class A, class B, class... More>
auto from_tensor_slices(const A& a, const B& b, const More&... more) {
  const auto part = []<class P>(const P& p) {
    if constexpr (std::convertible_to<const P&, Tensor>) {
      return Tensor(p);
    } else {
      return p;
    }
  };
  return from_tensor_slices(std::tuple{part(a), part(b), part(more)...});
}

// One element: the tensors as they are.
inline Dataset<Tensor> from_tensors(const Tensor& tensor) {
  Item item;
  from_value(tensor, item);
  return Dataset<Tensor>(nodes::tensors(std::move(item)));
}
template <class S>
  requires(!std::convertible_to<const S&, Tensor>)
detail::dataset_of<S> from_tensors(const S& element) {
  Item item;
  from_value(element, item);
  return detail::dataset_of<S>(nodes::tensors(std::move(item)));
}

// int64 scalars.
inline Dataset<Tensor> range(int64_t start, int64_t stop, int64_t step = 1) {
  return Dataset<Tensor>(nodes::range(start, stop, step));
}
inline Dataset<Tensor> range(int64_t stop) { return range(0, stop); }
inline Dataset<Tensor> counter(int64_t start = 0, int64_t step = 1) {
  return Dataset<Tensor>(nodes::counter(start, step));
}
// Endless int64 scalars in [0, 2^32).
inline Dataset<Tensor> random(std::optional<int64_t> seed = {}, bool rerandomize_each_iteration = true) {
  return Dataset<Tensor>(nodes::random(seed, rerandomize_each_iteration));
}

// Elements of plain C++. `make` is called at the beginning of each pass and gives a callable that returns the next
// element as a std::optional, nothing at the end. After a restore the elements before are made again.
template <class Make>
auto from_generator(Make make, ElementSpec spec = unknown_spec(nullptr)) {
  using Generator = std::decay_t<std::invoke_result_t<Make&>>;
  using E = typename std::decay_t<std::invoke_result_t<Generator&>>::value_type;
  using Out = detail::dataset_of<E>;
  if constexpr (detail::fixed_leaves<E>() >= 0) {
    if (spec.is_leaf() && spec.leaf().dtype == DType::invalid) spec = unknown_spec(detail::fixed_structure<E>());
  }
  return Out(nodes::generator(
      [make = std::move(make)]() mutable -> GeneratorFn {
        auto generator = std::make_shared<Generator>(make());
        return [generator](Item& out) {
          auto element = (*generator)();
          if (!element) return false;
          from_value(*element, out);
          return true;
        };
      },
      std::move(spec)));
}

// Elements of several datasets side by side; ends with the shortest.
template <class First, class... More>
auto zip(const First& first, const More&... more) {
  return Dataset<typename First::value_type, typename More::value_type...>(nodes::zip({first.node(), more.node()...}));
}

}  // namespace runnel::data
