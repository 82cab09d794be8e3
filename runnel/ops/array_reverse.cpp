// Reversal, rolling, and blocks of space moved to depth and back.
#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

void* at(const Tensor& t, int64_t element) {
  return cpu::element_at(static_cast<void*>(t.mutable_data<char>()), t.dtype(), element);
}

Dims reversed_dims(const Dims& axes, int rank) {
  Dims which(static_cast<size_t>(rank), 0);
  for (int64_t a : axes) {
    int64_t& seen = which[static_cast<size_t>(normalize_axis(a, rank))];
    if (seen) throw invalid_argument("axis {} is named twice", a);
    seen = 1;
  }
  return which;
}

// How far each dimension is rolled, in [0, size).
Dims roll_shifts(const Dims& shift, const Dims& axes, const Dims& dims) {
  if (shift.size() != axes.size()) throw invalid_argument("{} shifts for {} axes", shift.size(), axes.size());
  Dims total(dims.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(normalize_axis(axes[i], static_cast<int>(dims.size())));
    if (dims[d] == 0) continue;
    total[d] = ((total[d] + shift[i]) % dims[d] + dims[d]) % dims[d];
  }
  return total;
}

// Every dimension falls into two runs that stay together; their combinations are copied box by box.
void roll(const Tensor& x, const Dims& shift, const Tensor& out) {
  const Dims& dims = x.shape().dims();
  const Dims strides = cpu::dense_strides(dims);
  Dims moved;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (shift[d] != 0) moved.push_back(static_cast<int64_t>(d));
  }
  for (uint64_t corner = 0; corner < uint64_t{1} << moved.size(); ++corner) {
    Dims size = dims;
    int64_t from = 0, to = 0;
    for (size_t i = 0; i < moved.size(); ++i) {
      const auto d = static_cast<size_t>(moved[i]);
      const bool wraps = (corner >> i & 1) != 0;  // the last `shift` elements come to the front
      size[d] = wraps ? shift[d] : dims[d] - shift[d];
      from += (wraps ? dims[d] - shift[d] : 0) * strides[d];
      to += (wraps ? 0 : shift[d]) * strides[d];
    }
    cpu::copy_strided(x.dtype(), size, cpu::element_at(x.raw(), x.dtype(), from), strides, at(out, to), strides);
  }
}

struct BlockAttrs {
  int64_t block_size = 2;
  std::string data_format = "NHWC";
  static constexpr auto fields() {
    return field_list(field("block_size", &BlockAttrs::block_size, {.required = true, .minimum = 2}),
                      field("data_format", &BlockAttrs::data_format, {.texts = "NHWC|NCHW|NCHW_VECT_C"}));
  }
};

void check_blocks(const InferContext& c, const BlockAttrs& a) {
  c.require_rank(0, 4);
  if (a.data_format != "NHWC") throw invalid_argument("data_format {} is not supported, only NHWC", a.data_format);
}

// Strides of [batch, row, column, row in block, column in block, channel] of a tensor [batch, rows, columns, channels]
// whose pixels come in blocks of b by b.
Dims block_strides(const Shape& space, int64_t b) {
  const int64_t c = space[3], w = space[2] * c;
  return {space[1] * w, b * w, b * c, w, c, 1};
}

}  // namespace

void register_array_reverse(Registry& r) {
  r.define("ReverseV2")
      .in("tensor", data_types)
      .in_host("axis", "Tidx")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        c.require_rank(1, 1);
        const auto axes = c.constant_ints(1);
        if (axes && c.input(0).has_rank()) reversed_dims(*axes, c.input(0).rank());
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c) {
        const Dims& dims = c.in(0).shape().dims();
        const Dims which = reversed_dims(c.ints(1), c.in(0).rank());
        if (c.out().num_elements() == 0) return;
        Dims from = cpu::dense_strides(dims);
        int64_t first = 0;
        for (size_t d = 0; d < dims.size(); ++d) {
          if (!which[d]) continue;
          first += (dims[d] - 1) * from[d];
          from[d] = -from[d];
        }
        cpu::copy_strided(c.out().dtype(), dims, cpu::element_at(c.in(0).raw(), c.out().dtype(), first), from,
                          c.out<char>(), cpu::dense_strides(dims));
      })
      .grad([](const GradCtx& g) {
        return Gradients{reverse(g.dy(), Axes(g.x(1))), {}};
      })
      .doc("The elements in reverse order along the given axes.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{1}},
               .out = {Tensor{{3.f, 2.f, 1.f}, {6.f, 5.f, 4.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, -1}}, .out = {Tensor{{4.f, 3.f}, {2.f, 1.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{0, -2}}, .error = "named twice"});

  r.define("Roll")
      .in("input", all_types)
      .type("Tshift", index_types)
      .in_host("shift", "Tshift")
      .type("Taxis", index_types)
      .in_host("axis", "Taxis")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 1);
        const PartialShape &shifts = c.input(1), &named = c.input(2);
        if (shifts.rank() > 1 || named.rank() > 1 ||
            (shifts.has_rank() && named.has_rank() && shifts.rank() != named.rank())) {
          throw invalid_argument("shift and axis must be two numbers or two vectors of one size, got {} and {}",
                                 shifts.str(), named.str());
        }
        const auto shift = c.constant_ints(1), axes = c.constant_ints(2);
        if (shift && axes && c.input(0).is_static()) roll_shifts(*shift, *axes, c.input(0).dims());
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c) { roll(c.in(0), roll_shifts(c.ints(1), c.ints(2), c.in(0).shape().dims()), c.out()); })
      .grad([](const GradCtx& g) {
        static const Op op("Roll");
        const Tensor back = negative(g.x(1));
        return Gradients{op({g.dy(), back, g.x(2)}), {}, {}};
      })
      .doc("The elements shifted along axes; what leaves at one end comes in at the other.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f, 4.f}, Tensor(1), Tensor(0)}, .out = {Tensor{4.f, 1.f, 2.f, 3.f}}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{1, -1}, Tensor{0, 1}},
               .out = {Tensor{{5.f, 6.f, 4.f}, {2.f, 3.f, 1.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1, 1}, Tensor{0}}, .error = "2 shifts for 1 axes"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(1), Tensor{0}}, .error = "two numbers or two vectors"});

  r.define<BlockAttrs>("SpaceToDepth")
      .in("input", all_types)
      .out("output")
      .shape([](InferContext& c, const BlockAttrs& a) {
        check_blocks(c, a);
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(PartialShape::unknown_dims(4));
        const int64_t b = a.block_size;
        for (int d = 1; d < 3; ++d) {
          if (x[d] >= 0 && x[d] % b != 0) throw invalid_argument("size {} does not divide into blocks of {}", x[d], b);
        }
        auto part = [&](int64_t n) { return n < 0 ? kUnknownDim : n / b; };
        const int64_t places = checked_times(b, b);
        c.output(PartialShape{x[0], part(x[1]), part(x[2]), x[3] < 0 ? kUnknownDim : checked_times(x[3], places)});
      })
      .cpu([](KernelContext& c, const BlockAttrs& a) {
        const Shape& y = c.out().shape();
        const int64_t b = a.block_size;
        const Dims dims{y[0], y[1], y[2], b, b, y[3] / (b * b)};
        cpu::copy_strided(c.out().dtype(), dims, c.in(0).raw(), block_strides(c.in(0).shape(), b), c.out<char>(),
                          cpu::dense_strides(dims));
      })
      .grad([](const GradCtx& g, const BlockAttrs& a) { return depth_to_space(g.dy(), a.block_size); })
      .doc("Blocks of pixels laid out as channels.")
      .sample({.in = {Tensor{{{{1.f}, {2.f}}, {{3.f}, {4.f}}}}}, .out = {Tensor{{{{1.f, 2.f, 3.f, 4.f}}}}}})
      .sample({.in = {Tensor{{{{1.f, 5.f}, {2.f, 6.f}}, {{3.f, 7.f}, {4.f, 8.f}}}}},
               .out = {Tensor{{{{1.f, 5.f, 2.f, 6.f, 3.f, 7.f, 4.f, 8.f}}}}}})
      .sample({.in = {Tensor{{{{1.f}, {2.f}}}}}, .error = "does not divide into blocks of 2"})
      .sample({.in = {Tensor::empty(DType::float32, {1, 0, 0, 1})}, .error = "more than can be counted"},
              {.block_size = int64_t{1} << 32});

  r.define<BlockAttrs>("DepthToSpace")
      .in("input", all_types)
      .out("output")
      .shape([](InferContext& c, const BlockAttrs& a) {
        check_blocks(c, a);
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(PartialShape::unknown_dims(4));
        const int64_t b = a.block_size;
        const int64_t places = checked_times(b, b);
        if (x[3] >= 0 && x[3] % places != 0) {
          throw invalid_argument("{} channels do not divide into blocks of {} by {}", x[3], b, b);
        }
        auto times = [&](int64_t n) { return n < 0 ? kUnknownDim : checked_times(n, b); };
        c.output(PartialShape{x[0], times(x[1]), times(x[2]), x[3] < 0 ? kUnknownDim : x[3] / places});
      })
      .cpu([](KernelContext& c, const BlockAttrs& a) {
        const Shape& x = c.in(0).shape();
        const int64_t b = a.block_size;
        const Dims dims{x[0], x[1], x[2], b, b, x[3] / (b * b)};
        cpu::copy_strided(c.out().dtype(), dims, c.in(0).raw(), cpu::dense_strides(dims), c.out<char>(),
                          block_strides(c.out().shape(), b));
      })
      .grad([](const GradCtx& g, const BlockAttrs& a) { return space_to_depth(g.dy(), a.block_size); })
      .doc("Channels laid out as blocks of pixels: the inverse of SpaceToDepth.")
      .sample({.in = {Tensor{{{{1.f, 2.f, 3.f, 4.f}}}}}, .out = {Tensor{{{{1.f}, {2.f}}, {{3.f}, {4.f}}}}}})
      .sample({.in = {Tensor{{{{1.f, 2.f, 3.f, 4.f}, {5.f, 6.f, 7.f, 8.f}}}}},
               .out = {Tensor{{{{1.f}, {2.f}, {5.f}, {6.f}}, {{3.f}, {4.f}, {7.f}, {8.f}}}}}})
      .sample({.in = {Tensor{{{{1.f, 2.f}}}}}, .error = "do not divide into blocks of 2 by 2"})
      .sample({.in = {Tensor{{{{1.f, 2.f, 3.f, 4.f}}}}}, .error = "more than can be counted"},
              {.block_size = int64_t{1} << 32});
}

Tensor reverse(const Operand& tensor, const Axes& axis) {
  static const Op op("ReverseV2");
  return op({tensor, axis.tensor_for(tensor.value())});
}

Tensor roll(const Operand& input, const Axes& shift, const Axes& axis) {
  static const Op op("Roll");
  const Tensor x = input.value();
  return op({input, shift.tensor_for(x), axis.tensor_for(x)});
}

Tensor space_to_depth(const Operand& input, int64_t block_size) {
  static const Op<BlockAttrs> op("SpaceToDepth");
  return op({input}, {.block_size = block_size});
}

Tensor depth_to_space(const Operand& input, int64_t block_size) {
  static const Op<BlockAttrs> op("DepthToSpace");
  return op({input}, {.block_size = block_size});
}

}  // namespace runnel
