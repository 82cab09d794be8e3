#pragma once

// Control flow by functions: cond, switch_case, while_loop and what is built on them. Eagerly they are plain C++;
// inside a function they become nodes of its graph.
#include <functional>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/function/structure.h"
#include "runnel/graph/control_flow.h"
#include "runnel/op/operand.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/tensor_array.h"

namespace runnel {
namespace function_detail {

template <class T>
Tensors tensors_of(const T& value) {
  Tensors all;
  auto collect = [&](const Tensor& t) {
    all.push_back(t);
    return t;
  };
  map_tensors(value, collect);
  return all;
}
template <class T>
T with_tensors(const T& like, const Tensors& tensors) {
  size_t at = 0;
  auto next = [&](const Tensor&) { return tensors[at++]; };
  return map_tensors(like, next);
}

// Is a value needed that only the running graph has?
inline bool is_traced(const Tensor& t) { return is_tracing() && t.is_symbolic(); }

template <class State, class F>
decltype(auto) call_with(F& f, const State& state) {
  if constexpr (is_tuple<State>) {
    return std::apply(f, state);
  } else {
    return f(state);
  }
}

// What a loop keeps of its start: C++ numbers and variables become tensors, which the body can give back.
template <class T>
struct LoopState {
  using type = T;
};
template <class T>
  requires(Number<T> || std::same_as<T, Variable>)
struct LoopState<T> {
  using type = Tensor;
};
template <class... T>
struct LoopState<std::tuple<T...>> {
  using type = std::tuple<typename LoopState<T>::type...>;
};
template <class A, class B>
struct LoopState<std::pair<A, B>> {
  using type = std::pair<typename LoopState<A>::type, typename LoopState<B>::type>;
};
template <class T>
using LoopStateOf = typename LoopState<T>::type;

// A std::function may be empty.
template <class F>
bool can_be_called(const F&) {
  return true;
}
template <class Signature>
bool can_be_called(const std::function<Signature>& f) {
  return static_cast<bool>(f);
}
// Names branch number k; of a condition `then` is 0.
RUNNEL_API void require_callable(const char* what, size_t k, bool callable, const SourceSite& where);
RUNNEL_API void require_branches(size_t count, const SourceSite& where);
// The truth of a condition that has a value.
RUNNEL_API bool holds(const char* what, const Tensor& condition, const SourceSite& where);
RUNNEL_API int64_t leading_dim(const Tensor& t);
// The dtype and shape of what f gives, without running it.
struct Described {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
};
RUNNEL_API Described describe_result(const BranchFn& f);

// cond, whose errors say `what`.
template <class T, class E>
auto choose(const char* what, const Operand& predicate, T& then_branch, E& else_branch) {
  using R = std::decay_t<std::invoke_result_t<T&>>;
  require_callable(what, 0, can_be_called(then_branch), predicate.where());
  require_callable(what, 1, can_be_called(else_branch), predicate.where());
  require_stack(what, predicate.where());
  const Tensor p = predicate.value();
  if (!is_traced(p)) return holds(what, p, predicate.where()) ? R(then_branch()) : R(else_branch());
  if constexpr (std::is_void_v<R>) {
    add_cond(p, trace_branch("cond_then", [&] { return then_branch(), Tensors(); }),
             trace_branch("cond_else", [&] { return else_branch(), Tensors(); }), predicate.where(), what);
  } else {
    std::optional<R> like;
    Body then_body = trace_branch("cond_then", [&] {
      like.emplace(then_branch());
      return tensors_of(*like);
    });
    Body else_body = trace_branch("cond_else", [&] { return tensors_of(R(else_branch())); });
    return with_tensors(*like, add_cond(p, std::move(then_body), std::move(else_body), predicate.where(), what));
  }
}

}  // namespace function_detail

// One of two functions without parameters, by a bool. Both give the same structure of tensors.
template <class T, class E>
auto cond(const Operand& predicate, T then_branch, E else_branch) {
  return function_detail::choose("cond", predicate, then_branch, else_branch);
}

// Branch number `index`; the last one when there is none of that number.
template <class F>
auto switch_case(const Operand& index, std::vector<F> branches) {
  using namespace function_detail;
  using R = std::decay_t<std::invoke_result_t<F&>>;
  require_branches(branches.size(), index.where());
  for (size_t k = 0; k < branches.size(); ++k) {
    require_callable("switch_case", k, can_be_called(branches[k]), index.where());
  }
  require_stack("switch_case", index.where());
  const Tensor i = index.value();
  if (!is_traced(i)) {
    const auto k = static_cast<size_t>(i.item<int32_t>());
    return R(branches[k < branches.size() ? k : branches.size() - 1]());
  }
  std::optional<R> like;
  std::vector<Body> bodies;
  for (F& f : branches) {
    bodies.push_back(trace_branch("case", [&] {
      R result = f();
      Tensors all = tensors_of(result);
      if (!like) like.emplace(std::move(result));
      return all;
    }));
  }
  return with_tensors(*like, add_case(i, std::move(bodies), index.where()));
}
// switch_case(i, {[&] { return x + 1; }, [&] { return x * 2; }}): callables of different types that give a tensor.
inline Tensor switch_case(const Operand& index, std::initializer_list<std::function<Tensor()>> branches) {
  return switch_case(index, std::vector<std::function<Tensor()>>(branches));
}

// The branch of the first condition, a bool, that holds; `otherwise` when none does.
//   case_({{x < 0, [&] { return -x; }}, {x > 9, [&] { return x - 9; }}}, [&] { return x; })
struct Case {
  Tensor condition;
  std::function<Tensor()> branch;
};
RUNNEL_API Tensor case_(const std::vector<Case>& cases, const std::function<Tensor()>& otherwise,
                        SourceSite where = SourceSite::current());

// state = body(state) while condition(state) holds. A tuple is handed over as several parameters; numbers in it are
// tensors from then on.
//   auto [i, sum] = while_loop([&](Tensor i, Tensor) { return i < n; },
//                              [&](Tensor i, Tensor s) { return std::tuple{i + 1, s + f(i)}; }, std::tuple{0,
//                              zero});
template <class C, class B, class Start>
function_detail::LoopStateOf<Start> while_loop(C condition, B body, const Start& start,
                                               const WhileOptions& options = {},
                                               SourceSite where = SourceSite::current()) {
  using namespace function_detail;
  using State = LoopStateOf<Start>;
  require_stack("while_loop", where);
  const State state(start);
  if (!is_tracing()) {
    State now = state;
    for (int64_t k = 0; options.maximum_iterations < 0 || k < options.maximum_iterations; ++k) {
      if (!static_cast<bool>(Tensor(call_with(condition, now)))) break;
      now = call_with(body, now);
    }
    return now;
  }
  return with_tensors(
      state, add_while([&](const Tensors& s) { return Tensor(call_with(condition, with_tensors(state, s))); },
                       [&](const Tensors& s) { return tensors_of(State(call_with(body, with_tensors(state, s)))); },
                       tensors_of(state), options, where));
}

// f(... f(f(initial, elems[0]), elems[1]) ..., elems[n - 1])
template <class F, class Start>
function_detail::LoopStateOf<Start> foldl(F f, const Tensor& elems, const Start& start,
                                          SourceSite where = SourceSite::current()) {
  using namespace function_detail;
  using A = LoopStateOf<Start>;
  const A initial(start);
  require_stack("foldl", where);
  if (!is_tracing()) {
    A acc = initial;
    for (int64_t i = 0; i < leading_dim(elems); ++i) acc = f(acc, elems[i]);
    return acc;
  }
  const Tensor n = shape(elems)[0];
  return std::get<1>(while_loop([&](const Tensor& i, const A&) { return i < n; },
                                [&](const Tensor& i, const A& acc) {
                                  return std::tuple<Tensor, A>{i + 1, f(acc, gather(elems, i))};
                                },
                                std::tuple<Tensor, A>{Tensor(0), initial}, {}, where));
}

// The results of f(acc, elems[i]) for every i, stacked; each is the acc of the next.
template <class F>
Tensor scan(F f, const Tensor& elems, const Tensor& initial, SourceSite where = SourceSite::current()) {
  using namespace function_detail;
  require_stack("scan", where);
  if (!is_tracing()) {
    Tensor acc = initial;
    Tensors all;
    for (int64_t i = 0; i < leading_dim(elems); ++i) all.push_back(acc = f(acc, elems[i]));
    return all.empty() ? expand_dims(initial, 0)(slice(0, 0)) : stack(all);
  }
  const Tensor n = shape(elems)[0];
  const TensorArray results(initial.dtype(), n, {.element_shape = initial.partial_shape()});
  auto [i, acc, out] = while_loop([&](const Tensor& at, const Tensor&, const TensorArray&) { return at < n; },
                                  [&](const Tensor& at, const Tensor& a, const TensorArray& ta) {
                                    const Tensor next = f(a, gather(elems, at));
                                    return std::tuple{at + 1, next, ta.write(at, next)};
                                  },
                                  std::tuple{Tensor(0), initial, results}, {}, where);
  return out.stack();
}

// f of every element along the first dimension, stacked.
template <class F>
Tensor map_fn(F f, const Tensor& elems, SourceSite where = SourceSite::current()) {
  using namespace function_detail;
  require_stack("map_fn", where);
  if (!is_tracing()) {
    Tensors all;
    for (int64_t i = 0; i < leading_dim(elems); ++i) all.push_back(f(elems[i]));
    return all.empty() ? expand_dims(f(zeros_like(reduce_sum(elems, 0))), 0)(slice(0, 0)) : stack(all);
  }
  const Described d = describe_result([&] { return Tensors{f(gather(elems, Tensor(0)))}; });
  const Tensor n = shape(elems)[0];
  const TensorArray results(d.dtypes[0], n, {.element_shape = d.shapes[0]});
  auto [i, out] = while_loop([&](const Tensor& at, const TensorArray&) { return at < n; },
                             [&](const Tensor& at, const TensorArray& ta) {
                               return std::tuple{at + 1, ta.write(at, f(gather(elems, at)))};
                             },
                             std::tuple{Tensor(0), results}, {}, where);
  return out.stack();
}

}  // namespace runnel
