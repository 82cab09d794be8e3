// Joining tensors: stack and concat.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/register.h"

namespace runnel {
namespace {

struct PackAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{field("axis", &PackAttrs::axis)}; }
};

// Copies the inputs next to each other: for each of `outer` blocks, inputs[i] contributes sizes[i] elements.
template <class T>
void join(const std::vector<const T*>& inputs, const std::vector<int64_t>& sizes, int64_t outer, T* out) {
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      out = std::copy_n(inputs[i] + o * sizes[i], sizes[i], out);
    }
  }
}

template <class T>
void join_inputs(KernelContext& c, int count, int axis) {
  std::vector<const T*> inputs;
  std::vector<int64_t> sizes;
  int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= c.in(0).shape()[d];
  for (int i = 0; i < count; ++i) {
    inputs.push_back(c.in<T>(i));
    sizes.push_back(outer == 0 ? 0 : c.in(i).num_elements() / outer);
  }
  join(inputs, sizes, outer, c.out<T>());
}

}  // namespace

void register_array_join(Registry& r) {
  r.define<PackAttrs>("Pack")
      .type("T", all_types)
      .in_list("values", "N")
      .out("output")
      .shape([](InferContext& c, const PackAttrs& a) {
        if (c.num_inputs() == 0) throw invalid_argument("nothing to stack");
        PartialShape each = c.input(0);
        for (int i = 1; i < c.num_inputs(); ++i) each = each.merged_with(c.input(i));
        if (!each.has_rank()) return c.output(each);
        Dims dims = each.dims();
        const int axis = normalize_axis(a.axis, each.rank() + 1);
        dims.insert(dims.begin() + axis, c.num_inputs());
        c.output(PartialShape(dims));
      })
      .cpu([]<class T>(KernelContext& c, const PackAttrs& a) {
        join_inputs<T>(c, c.num_inputs(), normalize_axis(a.axis, c.in(0).rank() + 1));
      })
      .doc("Tensors of one shape, one after the other along a new axis.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3.f, 4.f}}, .out = {Tensor{{1.f, 3.f}, {2.f, 4.f}}}}, {.axis = 1})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3.f}}, .error = "incompatible"});

  r.define("ConcatV2")
      .type("T", all_types)
      .in_list("values", "N")
      .in_host("axis", "Tidx")
      .out("output")
      .shape([](InferContext& c) {
        const int n = c.num_inputs() - 1;
        if (n < 1) throw invalid_argument("nothing to join");
        const auto at = c.constant_ints(n);
        PartialShape first = c.input(0);
        if (!at || !first.has_rank()) return c.output(PartialShape::unknown());
        if (first.rank() == 0) throw invalid_argument("scalars cannot be joined: stack them");
        const int axis = normalize_axis((*at)[0], first.rank());
        Dims dims = first.dims();
        for (int i = 1; i < n; ++i) {
          const PartialShape& s = c.input(i);
          if (!s.has_rank()) return c.output(PartialShape::unknown());
          if (s.rank() != first.rank()) throw invalid_argument("ranks differ: {} and {}", first.str(), s.str());
          for (int d = 0; d < s.rank(); ++d) {
            int64_t& size = dims[static_cast<size_t>(d)];
            if (d == axis) {
              size = size < 0 || s[d] < 0 ? kUnknownDim : size + s[d];
            } else if (size < 0) {
              size = s[d];
            } else if (s[d] >= 0 && s[d] != size) {
              throw invalid_argument("sizes differ outside axis {}: {} and {}", axis, first.str(), s.str());
            }
          }
        }
        c.output(PartialShape(dims));
      })
      .cpu([]<class T>(KernelContext& c) {
        const int n = c.num_inputs() - 1;
        join_inputs<T>(c, n, normalize_axis(c.int_scalar(n), c.in(0).rank()));
      })
      .doc("Tensors joined along an existing axis.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{3.f}, Tensor(0)}, .out = {Tensor{1.f, 2.f, 3.f}}});
}

Tensor stack(const OperandList& values, int axis) {
  static const Op<PackAttrs> op("Pack");
  return op.list({values.values().begin(), values.values().end()}, {.axis = axis}, &values.where());
}

Tensor concat(const OperandList& values, int axis) {
  static const Op op("ConcatV2");
  const Tensor at = int_scalar(axis);
  std::vector<Arg> args(values.values().begin(), values.values().end());
  args.emplace_back(at);
  return op.list(args, {}, &values.where());
}

Tensor Gradient::value() const {
  if (!defined()) throw make_error(Code::failed_precondition, "there is no gradient: the target does not depend on the source");
  if (dense_.defined()) return dense_;
  throw make_error(Code::unimplemented, "slices");
}

IndexedSlices merge_slices(const IndexedSlices& a, const IndexedSlices& b) {
  return {concat({a.values, b.values}, 0), concat({a.indices, b.indices}, 0), a.dense_shape};
}

}  // namespace runnel
