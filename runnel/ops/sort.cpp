// The largest elements, and sorting built on them.
#include "runnel/ops/sort.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/top_k.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/bitwise.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct TopKAttrs {
  bool sorted = true;
  DType index_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("sorted", &TopKAttrs::sorted),
                      field("index_type", &TopKAttrs::index_type, {.types = narrow_index_types.mask}));
  }
};

void top_k_shape(InferContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 0);
  const auto k = c.constant_ints(1);
  if (k && (*k)[0] < 0) throw invalid_argument("k is negative: {}", (*k)[0]);
  PartialShape out = c.input(0);
  if (out.has_rank()) {
    Dims dims = out.dims();
    if (k && dims.back() >= 0 && (*k)[0] > dims.back()) {
      throw invalid_argument("rows of {} elements have no {} largest", dims.back(), (*k)[0]);
    }
    dims.back() = k ? (*k)[0] : kUnknownDim;
    out = PartialShape(dims);
  }
  c.output(0, out);
  c.output(1, out);
}

// The size of the last dimension, as a scalar tensor.
Tensor last_size(const Tensor& x) {
  const PartialShape known = x.partial_shape();
  if (known.has_rank() && known.rank() > 0 && known[known.rank() - 1] >= 0) return int_scalar(known[known.rank() - 1]);
  const Tensor sizes = shape(x);
  return gather(sizes, size(sizes) - 1);
}

Tensor top_k_grad(const GradCtx& g) {
  // Every element of dy goes to its position in the flat x.
  const Tensor n = cast(last_size(g.x(0)), DType::int64);
  const Tensor k = last_size(g.y(0));
  const Tensor indices =
      cast(reshape(g.y(1), stack({int_scalar(-1), cast(maximum(k, 1), DType::int32)})), DType::int64);
  const Tensor rows = range(cast(gather(shape(indices), 0), DType::int64));
  const Tensor flat = indices + reshape(rows * n, {-1, 1});
  const Tensor dx = math::unsorted_segment_sum(reshape(g.dy(0), {-1}), reshape(flat, {-1}), size(g.x(0)));
  return reshape(dx, shape_arg(g.x(0)));
}

bool descending(std::string_view direction, const char* function) {
  if (direction == "DESCENDING") return true;
  if (direction == "ASCENDING") return false;
  throw invalid_argument("[{}] direction must be ASCENDING or DESCENDING, got '{}'", function, direction);
}

// The same elements in opposite order: their negatives, without overflow.
Tensor in_opposite_order(const Tensor& x) { return is_integer(x.dtype()) ? bitwise::invert(x) : -x; }

// Everything along `axis`, largest first (of the opposites when ascending).
TopK sorted_along(const Tensor& x, int axis, bool down, const char* function) {
  const PartialShape known = x.partial_shape();
  if (known.rank() == 0) throw invalid_argument("[{}] a scalar has no axis to sort along", function);
  const int last = known.has_rank() ? known.rank() - 1 : -1;
  int at = axis;
  if (known.has_rank()) {
    at = normalize_axis(axis, known.rank());
  } else if (axis != -1) {
    throw make_error(Code::unimplemented, "[{}] along axis {} of a tensor of unknown rank", function, axis);
  }
  Dims perm = iota_dims(last + 1);
  if (at != last) std::swap(perm[static_cast<size_t>(at)], perm[static_cast<size_t>(last)]);
  auto moved = [&](const Tensor& t) { return at == last ? t : transpose(t, Axes(int_vector(perm))); };
  const Tensor rows = moved(down ? x : in_opposite_order(x));
  const TopK found = math::top_k(rows, last_size(rows));
  return {moved(down ? found.values : in_opposite_order(found.values)), moved(found.indices)};
}

}  // namespace

void register_sort(Registry& r) {
  r.define<TopKAttrs>("TopKV2")
      .in("input", real_numbers)
      .type("Tk", narrow_index_types, DType::int32)
      .in_host("k", "Tk")
      .out("values")
      .out("indices", "index_type")
      .shape(top_k_shape)
      .cpu([]<class T>(KernelContext& c) {
        const Shape& s = c.in(0).shape();
        const int64_t n = s[s.rank() - 1];
        const int64_t k = c.int_scalar(1);
        if (n > std::numeric_limits<int32_t>::max()) throw invalid_argument("rows of {} elements are too long", n);
        const int64_t rows = n == 0 ? 0 : c.in(0).num_elements() / n;
        if (c.output_dtype(1) == DType::int32) {
          cpu::top_k(c.in<T>(0), rows, n, k, c.out<T>(0), c.out<int32_t>(1));
        } else if (c.output_dtype(1) == DType::int64) {
          cpu::top_k(c.in<T>(0), rows, n, k, c.out<T>(0), c.out<int64_t>(1));
        } else {
          std::vector<int32_t> wide(static_cast<size_t>(rows * k));
          cpu::top_k(c.in<T>(0), rows, n, k, c.out<T>(0), wide.data());
          std::transform(wide.begin(), wide.end(), c.out<int16_t>(1),
                         [](int32_t i) { return static_cast<int16_t>(i); });
        }
      })
      .grad([](const GradCtx& g) {
        return Gradients{top_k_grad(g), {}};
      })
      .doc("The k largest elements of the last dimension, largest first, and their positions.")
      .sample({.in = {Tensor{3.f, 9.f, 1.f, 7.f}, Tensor(2)}, .out = {Tensor{9.f, 7.f}, Tensor{1, 3}}})
      .sample({.in = {Tensor{{3.f, 9.f, 1.f}, {7.f, 5.f, 6.f}}, Tensor(3)},
               .out = {Tensor{{9.f, 3.f, 1.f}, {7.f, 6.f, 5.f}}, Tensor{{1, 0, 2}, {0, 2, 1}}}})
      .sample({.in = {Tensor{3.f, 9.f, 1.f}, Tensor(int16_t{1})}, .out = {Tensor{9.f}, Tensor{int16_t{1}}}},
              {.index_type = DType::int16})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(3)}, .error = "no 3 largest"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(-1)}, .error = "k is negative"})
      .sample({.in = {Tensor(1.f), Tensor(1)}, .error = "rank"});
}

namespace math {
TopK top_k(const Operand& input, const Operand& k, bool sorted, DType index_type) {
  static const Op<TopKAttrs> op("TopKV2");
  auto out = op.many({input, k}, {.sorted = sorted, .index_type = index_type});
  return {out[0], out[1]};
}
}  // namespace math

Tensor sort(const Operand& values, int axis, std::string_view direction) {
  return composed(values.where(),
                  [&] { return sorted_along(values.value(), axis, descending(direction, "Sort"), "Sort").values; });
}
Tensor argsort(const Operand& values, int axis, std::string_view direction, bool) {
  return composed(values.where(), [&] {
    return sorted_along(values.value(), axis, descending(direction, "ArgSort"), "ArgSort").indices;
  });
}

}  // namespace runnel
