#pragma once

// Internal to the headers of datasets: how a callable of the user takes elements, and which dataset its results make.
#include <tuple>
#include <type_traits>
#include <utility>

#include "runnel/data/item.h"
#include "runnel/data/nodes.h"
#include "runnel/function/function.h"

namespace runnel::data {

template <class... T>
class Dataset;

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
    static_assert(std::is_invocable_v<F&, E>,
                  "the callable takes neither the components of an element of this dataset nor the whole element");
    return f(std::forward<E>(element));
  }
}
template <class F, class E>
using result_of = std::decay_t<decltype(call(std::declval<F&>(), std::declval<E>()))>;

// The dataset that a callable of flat_map or interleave expands elements to.
template <class R>
struct ExpandedTo {
  static_assert(
      requires { typename R::dataset_type; },
      "flat_map and interleave take a callable that returns a dataset; see map");
  using type = typename R::dataset_type;
};
template <class F, class E>
using expanded_by = typename ExpandedTo<result_of<F, E>>::type;

// A state that starts as a number and goes on as a tensor is a tensor.
template <class S, class R>
using state_of = std::conditional_t<Number<S> && !Number<R>, Tensor, S>;

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
  if constexpr (fixed_tensors<R>() >= 0) {
    made.structure = fixed_structure<R>();
  } else if constexpr (Number<R>) {
    made.structure = fixed_structure<Tensor>();
  }
  made.call = [f = std::move(f)](Item& in, Item& out) mutable { from_value(call(f, to_value<E>(in)), out); };
  return made;
}

}  // namespace detail

}  // namespace runnel::data
