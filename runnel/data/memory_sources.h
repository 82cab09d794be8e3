#pragma once

// Datasets of what is in memory, of numbers, of plain C++ and of other datasets.
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/data/typed_dataset.h"

namespace runnel::data {

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
  if constexpr (detail::fixed_tensors<E>() >= 0) {
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

}  // namespace runnel::data
