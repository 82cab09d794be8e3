#pragma once

// Datasets of what is in memory, of numbers, of plain C++ and of other datasets.
#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/data/typed_dataset.h"

namespace runnel::data {

namespace detail {
template <class S>
Item item_of(const S& value) {
  Item item;
  from_value(value, item);
  return item;
}
template <class S>
dataset_of<S> slices_of(const S& components, const SourceSite& where) {
  return dataset_of<S>(called_at(where, [&] { return nodes::tensor_slices(item_of(components)); }));
}
// A component of several: what converts to a Tensor is one.
template <class P>
auto component(const P& part) {
  if constexpr (std::convertible_to<const P&, Tensor>) {
    return Tensor(part);
  } else {
    return part;
  }
}
template <class T>
concept NoSite = !std::same_as<T, SourceSite>;
}  // namespace detail

// One element per row of the first dimension, which all components share: a tensor, several, or a structure.
//   from_tensor_slices(images, labels)                                            two components
//   from_tensor_slices(std::map<std::string, Tensor>{{"x", x}, {"y", y}})         a map
inline Dataset<Tensor> from_tensor_slices(const Tensor& tensor, SourceSite where = SourceSite::current()) {
  return detail::slices_of(tensor, where);
}
inline Dataset<Tensor, Tensor> from_tensor_slices(const Tensor& a, const Tensor& b,
                                                  SourceSite where = SourceSite::current()) {
  return detail::slices_of(std::tuple{a, b}, where);
}
template <class S>
  requires(!std::convertible_to<const S&, Tensor>)
detail::dataset_of<S> from_tensor_slices(const S& components, SourceSite where = SourceSite::current()) {
  return detail::slices_of(components, where);
}
template <class A, detail::NoSite B>
auto from_tensor_slices(const A& a, const B& b, SourceSite where = SourceSite::current()) {
  return detail::slices_of(std::tuple{detail::component(a), detail::component(b)}, where);
}
template <class A, class B, detail::NoSite C>
auto from_tensor_slices(const A& a, const B& b, const C& c, SourceSite where = SourceSite::current()) {
  return detail::slices_of(std::tuple{detail::component(a), detail::component(b), detail::component(c)}, where);
}
// More components; their number leaves no room for the caller's line.
template <class A, class B, class C, detail::NoSite D, class... More>
auto from_tensor_slices(const A& a, const B& b, const C& c, const D& d, const More&... more) {
  return detail::slices_of(std::tuple{detail::component(a), detail::component(b), detail::component(c),
                                      detail::component(d), detail::component(more)...},
                           SourceSite());
}

// One element: the tensors as they are.
inline Dataset<Tensor> from_tensors(const Tensor& tensor, SourceSite where = SourceSite::current()) {
  return Dataset<Tensor>(detail::called_at(where, [&] { return nodes::tensors(detail::item_of(tensor)); }));
}
template <class S>
  requires(!std::convertible_to<const S&, Tensor>)
detail::dataset_of<S> from_tensors(const S& element, SourceSite where = SourceSite::current()) {
  return detail::dataset_of<S>(detail::called_at(where, [&] { return nodes::tensors(detail::item_of(element)); }));
}

// int64 scalars.
inline Dataset<Tensor> range(int64_t start, int64_t stop, int64_t step = 1, SourceSite where = SourceSite::current()) {
  return Dataset<Tensor>(detail::called_at(where, [&] { return nodes::range(start, stop, step); }));
}
inline Dataset<Tensor> range(int64_t stop, SourceSite where = SourceSite::current()) {
  return range(0, stop, 1, where);
}
inline Dataset<Tensor> counter(int64_t start = 0, int64_t step = 1, SourceSite where = SourceSite::current()) {
  return Dataset<Tensor>(detail::called_at(where, [&] { return nodes::counter(start, step); }));
}
// Endless int64 scalars in [0, 2^32).
inline Dataset<Tensor> random(std::optional<int64_t> seed = {}, bool rerandomize_each_iteration = true,
                              SourceSite where = SourceSite::current()) {
  return Dataset<Tensor>(detail::called_at(where, [&] { return nodes::random(seed, rerandomize_each_iteration); }));
}

// Elements of plain C++. `make` is called at the beginning of each pass and gives a callable that returns the next
// element as a std::optional, nothing at the end. After a restore the elements before are made again.
template <class Make>
auto from_generator(Make make, ElementSpec spec = unknown_spec(nullptr), SourceSite where = SourceSite::current()) {
  using Generator = std::decay_t<std::invoke_result_t<Make&>>;
  static_assert(
      std::is_invocable_v<Generator&>,
      "from_generator takes a callable that returns a callable, which returns the next element as an optional");
  using E = typename std::decay_t<std::invoke_result_t<Generator&>>::value_type;
  using Out = detail::dataset_of<E>;
  if constexpr (detail::fixed_tensors<E>() >= 0) {
    if (spec.is_leaf() && spec.leaf().dtype == DType::invalid) spec = unknown_spec(detail::fixed_structure<E>());
  }
  auto begin_pass = [make = std::move(make)]() mutable -> GeneratorFn {
    auto generator = std::make_shared<Generator>(make());
    return [generator](Item& out) {
      auto element = (*generator)();
      if (!element) return false;
      from_value(*element, out);
      return true;
    };
  };
  return Out(detail::called_at(where, [&] { return nodes::generator(std::move(begin_pass), std::move(spec)); }));
}

namespace detail {
template <class D>
concept AnyKindOfDataset = requires(const D& d) {
  typename D::dataset_type;
  { d.node() } -> std::convertible_to<NodePtr>;
};
// What an element of a dataset is.
template <class D>
struct ValueOf {
  using type = typename D::value_type;
};
template <>
struct ValueOf<AnyDataset> {
  using type = Nest;
};
template <AnyKindOfDataset... D>
auto zipped(const SourceSite& where, const D&... datasets) {
  return Dataset<typename ValueOf<D>::type...>(called_at(where, [&] { return nodes::zip({datasets.node()...}); }));
}
template <class First, size_t... i>
auto zipped(const First* datasets, const SourceSite& where, std::index_sequence<i...>) {
  return zipped(where, datasets[i]...);
}
}  // namespace detail

// Elements of several datasets side by side; ends with the shortest. zip(a, b), zip({a, b}) and zip(std::tuple{a, b})
// are the same. Braces around datasets of different types give an AnyDataset.
template <detail::AnyKindOfDataset A>
auto zip(const A& a, SourceSite where = SourceSite::current()) {
  return detail::zipped(where, a);
}
template <detail::AnyKindOfDataset A, detail::AnyKindOfDataset B>
auto zip(const A& a, const B& b, SourceSite where = SourceSite::current()) {
  return detail::zipped(where, a, b);
}
template <detail::AnyKindOfDataset A, detail::AnyKindOfDataset B, detail::AnyKindOfDataset C>
auto zip(const A& a, const B& b, const C& c, SourceSite where = SourceSite::current()) {
  return detail::zipped(where, a, b, c);
}
// More datasets; their number leaves no room for the caller's line.
template <detail::AnyKindOfDataset A, detail::AnyKindOfDataset B, detail::AnyKindOfDataset C,
          detail::AnyKindOfDataset D, detail::AnyKindOfDataset... More>
auto zip(const A& a, const B& b, const C& c, const D& d, const More&... more) {
  return detail::zipped(SourceSite(), a, b, c, d, more...);
}
template <detail::AnyKindOfDataset... D>
auto zip(const std::tuple<D...>& datasets, SourceSite where = SourceSite::current()) {
  return std::apply([&](const D&... each) { return detail::zipped(where, each...); }, datasets);
}
template <detail::AnyKindOfDataset D, size_t n>
auto zip(const D (&datasets)[n], SourceSite where = SourceSite::current()) {
  return detail::zipped(datasets, where, std::make_index_sequence<n>());
}
inline AnyDataset zip(const std::vector<AnyDataset>& datasets, SourceSite where = SourceSite::current()) {
  return AnyDataset::zip(datasets, where);
}

// The next element of the dataset whose number `choice` gives; of the others where stop_on_empty_dataset is not set.
template <class... T>
Dataset<T...> choose_from_datasets(const std::vector<Dataset<T...>>& datasets, const Dataset<Tensor>& choice,
                                   bool stop_on_empty_dataset = true, SourceSite where = SourceSite::current()) {
  return Dataset<T...>(detail::called_at(
      where, [&] { return nodes::choose(detail::nodes_of(datasets), choice.node(), stop_on_empty_dataset); }));
}
// Elements of the datasets at random, by weights (equal ones where none are given).
template <class... T>
Dataset<T...> sample_from_datasets(const std::vector<Dataset<T...>>& datasets, const std::vector<double>& weights = {},
                                   std::optional<int64_t> seed = {}, bool stop_on_empty_dataset = false,
                                   bool rerandomize_each_iteration = true, SourceSite where = SourceSite::current()) {
  return Dataset<T...>(detail::called_at(where, [&] {
    return nodes::sample(detail::nodes_of(datasets), weights, seed, stop_on_empty_dataset, rerandomize_each_iteration);
  }));
}

}  // namespace runnel::data
