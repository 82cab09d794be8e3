// The distinct elements of a vector.
#include <bit>
#include <functional>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/sort.h"

namespace runnel {
namespace {

struct UniqueAttrs {
  DType out_idx = DType::int32;
  static constexpr auto fields() {
    return field_list(field("out_idx", &UniqueAttrs::out_idx, {.types = index_types.mask}));
  }
};

void unique_shape(InferContext& c) {
  c.require_rank(0, 1);
  c.output(0, PartialShape{kUnknownDim});
  c.output(1, c.input(0).has_rank() ? c.input(0) : PartialShape{kUnknownDim});
  if (c.num_outputs() > 2) c.output(2, PartialShape{kUnknownDim});
}

template <class T>
uint64_t hash_of(const T& x) {
  if constexpr (std::is_same_v<T, Bytes>) {
    return std::hash<std::string_view>()(x.view());
  } else {
    uint64_t bits;
    if constexpr (std::is_floating_point_v<T> || HalfFloat<T>) {
      bits = std::bit_cast<uint64_t>(static_cast<double>(x) + 0.0);  // the zeros are equal
    } else {
      bits = static_cast<uint64_t>(x);
    }
    bits *= 0x9e3779b97f4a7c15u;
    return bits ^ bits >> 32;
  }
}

// Numbers the distinct elements 0, 1, ... as they come: a table of positions with open addressing.
template <class T>
class Distinct {
 public:
  explicit Distinct(int64_t elements) : slots_(std::bit_ceil(static_cast<size_t>(elements) * 2 + 2), -1) {}

  int64_t number(const T& x) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash_of(x) & mask;; i = (i + 1) & mask) {
      if (slots_[i] < 0) {
        slots_[i] = static_cast<int64_t>(found_.size());
        found_.push_back(&x);
        return slots_[i];
      }
      if (*found_[static_cast<size_t>(slots_[i])] == x) return slots_[i];
    }
  }
  const std::vector<const T*>& found() const { return found_; }

 private:
  std::vector<int64_t> slots_;
  std::vector<const T*> found_;  // by number; elements of the input
};

template <class T, class I>
void unique_kernel(KernelContext& c) {
  const int64_t n = c.in(0).num_elements();
  const T* x = c.in<T>(0);
  I* idx = c.out<I>(1);
  Distinct<T> distinct(n);
  std::vector<I> counts;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(distinct.number(x[i]));
    idx[i] = static_cast<I>(at);
    if (at == counts.size()) counts.push_back(0);
    ++counts[at];
  }
  const auto m = static_cast<int64_t>(distinct.found().size());
  T* y = c.allocate(0, {m}).template mutable_data<T>();
  for (int64_t i = 0; i < m; ++i) y[i] = *distinct.found()[static_cast<size_t>(i)];
  if (c.num_outputs() > 2) std::copy(counts.begin(), counts.end(), c.allocate(2, {m}).template mutable_data<I>());
}

template <class T>
void unique_kernel(KernelContext& c) {
  if (c.output_dtype(1) == DType::int32) {
    unique_kernel<T, int32_t>(c);
  } else {
    unique_kernel<T, int64_t>(c);
  }
}

inline constexpr auto unique_types = real_numbers + booleans + strings_only;

}  // namespace

void register_unique(Registry& r) {
  r.define<UniqueAttrs>("Unique")
      .in("x", unique_types)
      .out("y")
      .out("idx", "out_idx")
      .shape(unique_shape)
      .cpu([]<class T>(KernelContext& c) { unique_kernel<T>(c); })
      .not_differentiable()
      .doc("The distinct elements of a vector in the order of their first appearance, and where each element went.")
      .sample({.in = {Tensor{5.f, 2.f, 5.f, 7.f, 2.f}}, .out = {Tensor{5.f, 2.f, 7.f}, Tensor{0, 1, 0, 2, 1}}})
      .sample({.in = {Tensor{1, 1, 4}}, .out = {Tensor{1, 4}, Tensor{int64_t{0}, int64_t{0}, int64_t{1}}}},
              {.out_idx = DType::int64})
      .sample({.in = {Tensor{{1.f, 2.f}}}, .error = "rank 1"});

  r.define<UniqueAttrs>("UniqueWithCounts")
      .in("x", unique_types)
      .out("y")
      .out("idx", "out_idx")
      .out("count", "out_idx")
      .shape(unique_shape)
      .cpu([]<class T>(KernelContext& c) { unique_kernel<T>(c); })
      .not_differentiable()
      .doc("As Unique, and how often every distinct element appears.")
      .sample({.in = {Tensor{5.f, 2.f, 5.f, 7.f}}, .out = {Tensor{5.f, 2.f, 7.f}, Tensor{0, 1, 0, 2}, Tensor{2, 1, 1}}})
      .sample({.in = {Tensor{"b", "a", "b"}}, .out = {Tensor{"b", "a"}, Tensor{0, 1, 0}, Tensor{2, 1}}});
}

Unique unique(const Operand& x, DType out_idx) {
  static const Op<UniqueAttrs> op("Unique");
  auto out = op.many({x}, {.out_idx = out_idx});
  return {out[0], out[1]};
}
UniqueWithCounts unique_with_counts(const Operand& x, DType out_idx) {
  static const Op<UniqueAttrs> op("UniqueWithCounts");
  auto out = op.many({x}, {.out_idx = out_idx});
  return {out[0], out[1], out[2]};
}

}  // namespace runnel
