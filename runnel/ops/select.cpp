// Choosing between tensors by a condition, and where it holds.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

struct Word16 {
  uint64_t words[2];
};
struct Choose {
  template <class T>
  T operator()(bool condition, T x, T y) const {
    return condition ? x : y;
  }
};

// T stands for elements of its size.
template <class T>
void choose(KernelContext& c, const Dims& condition) {
  const auto* x = static_cast<const T*>(c.in(1).raw());
  const auto* y = static_cast<const T*>(c.in(2).raw());
  auto* chosen = static_cast<T*>(static_cast<void*>(c.out<char>()));
  cpu::ternary_broadcast<Choose, bool, T, T, T>(c.in<bool>(0), condition, x, c.in(1).shape().dims(), y,
                                                c.in(2).shape().dims(), chosen, c.out().shape().dims());
}

// Strings and handles move as pointers first, which broadcast like numbers.
template <class T>
void choose_objects(KernelContext& c, const Dims& condition) {
  using P = const void*;
  const auto pointers = [&](int i) {
    std::vector<P> all(static_cast<size_t>(c.in(i).num_elements()));
    for (size_t k = 0; k < all.size(); ++k) all[k] = c.in<T>(i) + k;
    return all;
  };
  const auto x = pointers(1), y = pointers(2);
  std::vector<P> chosen(static_cast<size_t>(c.out().num_elements()));
  cpu::ternary_broadcast<Choose, bool, P, P, P>(c.in<bool>(0), condition, x.data(), c.in(1).shape().dims(), y.data(),
                                                c.in(2).shape().dims(), chosen.data(), c.out().shape().dims());
  for (size_t k = 0; k < chosen.size(); ++k) c.out<T>()[k] = *static_cast<const T*>(chosen[k]);
}

// Elements are only moved: their size decides.
void choose_by_size(KernelContext& c, const Dims& condition) {
  switch (c.in(1).dtype()) {
    case DType::string: return choose_objects<Bytes>(c, condition);
    case DType::resource: return choose_objects<ResourceHandle>(c, condition);
    case DType::variant: return choose_objects<VariantValue>(c, condition);
    default: break;
  }
  switch (dtype_size(c.in(1).dtype())) {
    case 1: return choose<uint8_t>(c, condition);
    case 2: return choose<uint16_t>(c, condition);
    case 4: return choose<int32_t>(c, condition);
    case 8: return choose<int64_t>(c, condition);
    default: return choose<Word16>(c, condition);
  }
}

Gradients select_gradients(const GradCtx& g, const Tensor& condition) {
  return {{}, g.want(1, [&] { return sum_to_shape_of(where(condition, g.dy(), 0), g.x(1)); }), g.want(2, [&] {
            return sum_to_shape_of(where(condition, 0, g.dy()), g.x(2));
          })};
}

// A vector condition of the older Select chooses whole rows of x: it stands for one of shape [n,1,...,1].
bool chooses_rows(const PartialShape& condition, const PartialShape& x) {
  return condition.has_rank() && condition.rank() == 1 && x.has_rank() && x.rank() > 1;
}
Dims row_condition(const PartialShape& condition, const PartialShape& x) {
  Dims dims = condition.dims();
  if (chooses_rows(condition, x)) dims.resize(static_cast<size_t>(x.rank()), 1);
  return dims;
}

template <class T>
void nonzero_indices(KernelContext& c) {
  const Tensor& x = c.in(0);
  const T* values = c.in<T>(0);
  const int64_t n = x.num_elements();
  const int64_t rank = x.rank();
  // Counted, then written, in chunks cut by n alone.
  constexpr int64_t kChunk = 1 << 16;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<int64_t> start(static_cast<size_t>(chunks) + 1, 0);
  parallel_for(chunks, 1, [&](int64_t chunk, int64_t) {
    const int64_t end = std::min(n, (chunk + 1) * kChunk);
    int64_t count = 0;
    for (int64_t i = chunk * kChunk; i < end; ++i) count += values[i] != T(0);
    start[static_cast<size_t>(chunk) + 1] = count;
  });
  for (size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  int64_t* rows = c.allocate(0, Shape{start.back(), rank}).mutable_data<int64_t>();
  if (rank == 0) return;
  const Dims& dims = x.shape().dims();
  parallel_for(chunks, 1, [&](int64_t chunk, int64_t) {
    const int64_t end = std::min(n, (chunk + 1) * kChunk);
    int64_t* row = rows + start[static_cast<size_t>(chunk)] * rank;
    for (int64_t i = chunk * kChunk; i < end; ++i) {
      if (!(values[i] != T(0))) continue;
      int64_t rest = i;
      for (int64_t d = rank - 1; d > 0; --d) {
        const int64_t size = dims[static_cast<size_t>(d)];
        row[d] = rest % size;
        rest /= size;
      }
      row[0] = rest;
      row += rank;
    }
  });
}

}  // namespace

void register_select(Registry& r) {
  r.define("SelectV2")
      .in("condition", DType::bool_)
      .type("T", all_types)
      .in("t", "T")
      .in("e", "T")
      .out("output", "T")
      .shape([](InferContext& c) { c.output(broadcast_shapes(c.input(0), broadcast_shapes(c.input(1), c.input(2)))); })
      .cpu([](KernelContext& c) { choose_by_size(c, c.in(0).shape().dims()); })
      .grad([](const GradCtx& g) { return select_gradients(g, g.x(0)); })
      .elementwise_op()
      .doc("t where the condition holds, e elsewhere; all three broadcast.")
      .sample({.in = {Tensor{true, false}, Tensor{1.f, 2.f}, Tensor{10.f, 20.f}}, .out = {Tensor{1.f, 20.f}}})
      .sample({.in = {Tensor{{true}, {false}}, Tensor{1.f, 2.f}, Tensor(5.f)}, .out = {Tensor{{1.f, 2.f}, {5.f, 5.f}}}})
      .sample({.in = {Tensor{true, false}, Tensor("yes"), Tensor{"a", "b"}}, .out = {Tensor{"yes", "b"}}})
      .sample({.in = {Tensor{true, false}, Tensor{1.f, 2.f, 3.f}, Tensor(5.f)}, .error = "do not broadcast"});

  r.define("Select")
      .in("condition", DType::bool_)
      .type("T", all_types)
      .in("t", "T")
      .in("e", "T")
      .out("output", "T")
      .shape([](InferContext& c) {
        const PartialShape x = c.input(1).merged_with(c.input(2));
        const PartialShape& condition = c.input(0);
        const bool scalar = condition.has_rank() && condition.rank() == 0;
        const bool rows = chooses_rows(condition, x) && PartialShape{x[0]}.compatible_with(condition);
        if (!scalar && !rows && !condition.compatible_with(x)) {
          throw invalid_argument("the condition must be a scalar, a vector over the rows, or of shape {}; got {}",
                                 x.str(), condition.str());
        }
        c.output(x);
      })
      .cpu([](KernelContext& c) { choose_by_size(c, row_condition(c.in(0).shape(), c.in(1).shape())); })
      .grad([](const GradCtx& g) {
        const Tensor& condition = g.x(0);
        if (!condition.partial_shape().has_rank() || !g.x(1).partial_shape().has_rank()) {
          // As many dimensions of size 1 after those of the condition as it lacks: none, or all but the first.
          const Tensor missing = expand_dims(rank(g.x(1)) - rank(condition), 0);
          const Tensor sizes = concat({shape(condition), fill(missing, Tensor(1))}, 0);
          return select_gradients(g, reshape(condition, sizes));
        }
        if (!chooses_rows(condition.partial_shape(), g.x(1).partial_shape())) return select_gradients(g, condition);
        Dims dims(static_cast<size_t>(g.x(1).partial_shape().rank()), 1);
        dims[0] = -1;
        return select_gradients(g, reshape(condition, dims));
      })
      .doc("SelectV2 without broadcasting, except that a vector condition chooses whole rows.")
      .sample({.in = {Tensor{true, false}, Tensor{1.f, 2.f}, Tensor{10.f, 20.f}}, .out = {Tensor{1.f, 20.f}}})
      .sample({.in = {Tensor{true, false}, Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{5.f, 6.f}, {7.f, 8.f}}},
               .out = {Tensor{{1.f, 2.f}, {7.f, 8.f}}}})
      .sample({.in = {Tensor{true, false}, Tensor{1.f, 2.f, 3.f}, Tensor{1.f, 2.f, 3.f}},
               .error = "the condition must be"});

  r.define("Where")
      .in("input", plain_types, DType::bool_)
      .out("index", DType::int64)
      .shape([](InferContext& c) {
        const PartialShape& x = c.input(0);
        c.output(PartialShape{kUnknownDim, x.has_rank() ? int64_t{x.rank()} : kUnknownDim});
      })
      .cpu([]<class T>(KernelContext& c) { nonzero_indices<T>(c); })
      .doc("The indices of the elements that are not zero, one row each, in row-major order.")
      .sample({.in = {Tensor{{true, false}, {false, true}}}, .out = {Tensor::of<int64_t>({0, 0, 1, 1}, Shape{2, 2})}})
      .sample({.in = {Tensor{0.f, 2.f, 3.f}}, .out = {Tensor::of<int64_t>({1, 2}, Shape{2, 1})}});
}

Tensor where(const Operand& condition, const Operand& x, const Operand& y) {
  static const Op op("SelectV2");
  return op({condition, x, y});
}

Tensor where(const Operand& condition) {
  static const Op op("Where");
  return op({condition});
}

}  // namespace runnel
