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
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/data/iterator.h"
#include "runnel/data/nested.h"
#include "runnel/data/nodes.h"
#include "runnel/data/traced_pass.h"
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
// What a function gives that is a structure under another name (ParsedExample).
template <class R>
  requires requires(const R& made) {
    { made.nest() } -> std::same_as<Nest>;
  }
struct DatasetOf<R> {
  using type = Dataset<Nest>;
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
  // Stacks this many successive elements; the last batch may be smaller. SparseTensors of an element become one with a
  // dimension more, as wide as the widest of them, RaggedTensors one with a ragged dimension more.
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
  Self rebatch(int64_t batch_size, bool drop_remainder = false) const {
    return Self(nodes::rebatch(node(), batch_size, drop_remainder));
  }
  // The rows of every element. Those of a RaggedTensor with one ragged dimension are tensors: ragged_batch joins them.
  Self unbatch() const { return Self(nodes::unbatch(node())); }
  // Stacks elements that differ in shape, filled up to the largest of the batch or to padded_shapes.
  Self padded_batch(int64_t batch_size, const PaddedBatchOptions& options = {}) const {
    return Self(nodes::padded_batch(node(), batch_size, options));
  }
  // Without elements that came before.
  Self unique() const { return Self(nodes::unique(node())); }
  // Goes on after an error, with the element behind it. `count` tells how many there were, `log` what they were.
  Self ignore_errors(const std::shared_ptr<std::atomic<int64_t>>& count = nullptr,
                     const std::function<void(const std::exception&)>& log = nullptr) const {
    return Self(nodes::ignore_errors(node(), count, log));
  }
  // Keeps the elements of the first whole pass: in memory, or in a file, which appears only when it is complete.
  Self cache(const std::string& path = "", Env& env = Env::posix()) const {
    return Self(nodes::cache(node(), path, env));
  }
  // A cache in a folder, under a name made from the pipeline: another pipeline has another file.
  Self snapshot(const std::string& dir, Env& env = Env::posix()) const {
    return Self(nodes::snapshot(node(), dir, env));
  }
  // Parts that share no element, now and in every later pass: {0.8, 0.2}. The order of the input is the same for all.
  std::vector<Self> split(const std::vector<double>& fractions, int64_t seed = 0) const {
    std::vector<Self> parts;
    for (NodePtr& part : nodes::split(node(), fractions, seed)) parts.push_back(Self(std::move(part)));
    return parts;
  }
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
  ForLoop(const NodePtr& node, std::source_location where) : traced_(node, where) {
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
  // The elements of the dataset that f makes of each element, one dataset after the other.
  template <class F>
  auto flat_map(F f) const {
    using Out = detail::result_of<F, value_type>;
    return Out(nodes::flat_map(this->node(), expansion(std::move(f)), Out::structure()));
  }
  // The same in turns: block_length elements of each of cycle_length datasets.
  template <class F>
  auto interleave(F f, const InterleaveOptions& options = {}) const {
    using Out = detail::result_of<F, value_type>;
    return Out(nodes::interleave(this->node(), expansion(std::move(f)), options, Out::structure()));
  }
  // f(state, element...) gives {new state, element}; the state is a structure of tensors.
  template <class S, class F>
  auto scan(const S& initial, F f) const {
    using R = std::decay_t<decltype(call_with_state(f, std::declval<S>(), std::declval<value_type>()))>;
    using E = std::decay_t<std::tuple_element_t<1, R>>;
    ScanFn made;
    if constexpr (detail::fixed_leaves<E>() >= 0) made.structure = detail::fixed_structure<E>();
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
    using Out = std::decay_t<std::invoke_result_t<F&, int64_t, Dataset>>;
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
  detail::ForLoop<T...> begin(std::source_location where = std::source_location::current()) const {
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
    if constexpr (detail::fixed_leaves<value_type>() >= 0) {
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

// The next element of the dataset whose number `choice` gives; of the others where stop_on_empty_dataset is not set.
template <class... T>
Dataset<T...> choose_from_datasets(const std::vector<Dataset<T...>>& datasets, const Dataset<Tensor>& choice,
                                   bool stop_on_empty_dataset = true) {
  std::vector<NodePtr> inputs;
  for (const auto& d : datasets) inputs.push_back(d.node());
  return Dataset<T...>(nodes::choose(std::move(inputs), choice.node(), stop_on_empty_dataset));
}
// Elements of the datasets at random, by weights (equal ones where none are given).
template <class... T>
Dataset<T...> sample_from_datasets(const std::vector<Dataset<T...>>& datasets, const std::vector<double>& weights = {},
                                   std::optional<int64_t> seed = {}, bool stop_on_empty_dataset = false,
                                   bool rerandomize_each_iteration = true) {
  std::vector<NodePtr> inputs;
  for (const auto& d : datasets) inputs.push_back(d.node());
  return Dataset<T...>(
      nodes::sample(std::move(inputs), weights, seed, stop_on_empty_dataset, rerandomize_each_iteration));
}

// Paths: one, several, or a dataset of them.
class Paths {
 public:
  Paths(const char* path) : Paths(Tensor{path}) {}         // NOLINT: implicit
  Paths(const std::string& path) : Paths(Tensor{path}) {}  // NOLINT
  Paths(std::initializer_list<std::string> paths)          // NOLINT
      : Paths(std::vector<std::string>(paths)) {}
  Paths(const std::vector<std::string>& paths)  // NOLINT
      : Paths(Tensor::of<Bytes>(std::vector<Bytes>(paths.begin(), paths.end()))) {}
  Paths(const Dataset<Tensor>& paths) : node_(paths.node()) {}  // NOLINT
  const NodePtr& node() const { return node_; }

 private:
  explicit Paths(const Tensor& paths) : node_(from_tensor_slices(paths).node()) {}
  NodePtr node_;
};

// One string per line, without its end.
class TextLineDataset : public Dataset<Tensor> {
 public:
  explicit TextLineDataset(const Paths& paths, const TextLineOptions& options = {}, Env& env = Env::posix())
      : Dataset(nodes::text_lines(paths.node(), options, env)) {}
};
// One string per `record_bytes` bytes.
class FixedLengthRecordDataset : public Dataset<Tensor> {
 public:
  FixedLengthRecordDataset(const Paths& paths, const FixedLengthOptions& options, Env& env = Env::posix())
      : Dataset(nodes::fixed_length_records(paths.node(), options, env)) {}
};
// One string per record of TFRecord files.
class TFRecordDataset : public Dataset<Tensor> {
 public:
  explicit TFRecordDataset(const Paths& paths, const RecordOptions& options = {}, Env& env = Env::posix())
      : Dataset(nodes::records(paths.node(), options, env)) {}
};

// The same of plain files as a source that knows its length and answers by number: shuffles are permutations that hold
// no records, over all files at once. An index beside a file (`runnel records index FILE`) is used where there is one;
// without it the file is read through once, here. The files must stay as they are.
class IndexedRecordDataset : public Dataset<Tensor> {
 public:
  explicit IndexedRecordDataset(const Paths& paths, Env& env = Env::posix())
      : Dataset(nodes::indexed_records(paths.node(), env)) {}
};

// The paths that fit a pattern (*, ?, [a-z]), in random order unless said otherwise; an Error where there is none.
inline Dataset<Tensor> list_files(const std::vector<std::string>& patterns, bool shuffle = true,
                                  std::optional<int64_t> seed = {}, Env& env = Env::posix()) {
  return Dataset<Tensor>(nodes::list_files(patterns, shuffle, seed, env));
}
inline Dataset<Tensor> list_files(const std::string& pattern, bool shuffle = true, std::optional<int64_t> seed = {},
                                  Env& env = Env::posix()) {
  return list_files(std::vector<std::string>{pattern}, shuffle, seed, env);
}

// A scalar for each column. record_defaults gives the dtypes and what stands for empty fields; see io::decode_csv.
RUNNEL_API Dataset<std::vector<Tensor>> csv(const Paths& paths, const std::vector<Tensor>& record_defaults,
                                            const CsvOptions& options = {}, Env& env = Env::posix());

}  // namespace runnel::data
