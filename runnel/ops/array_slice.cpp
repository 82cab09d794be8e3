// Slices: Slice, StridedSlice and NumPy-style indexing.
#include <bit>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct MaskAttrs : StridedSliceMasks {
  static constexpr auto fields() {
    return field_list(field("begin_mask", &MaskAttrs::begin_mask), field("end_mask", &MaskAttrs::end_mask),
                      field("ellipsis_mask", &MaskAttrs::ellipsis_mask),
                      field("new_axis_mask", &MaskAttrs::new_axis_mask),
                      field("shrink_axis_mask", &MaskAttrs::shrink_axis_mask));
  }
};

bool bit(int64_t mask, int i) { return i < 63 && (mask >> i & 1) != 0; }

// What a strided slice takes of every dimension of its input, and the shape that results.
struct Box {
  Dims begin, step, size;  // per dimension of the input
  Dims shape;              // of the result: positions dropped, new axes put in
  bool is_static = true;

  // A run of whole rows of the first dimension.
  bool is_leading_range(const Dims& dims) const {
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool whole = begin[d] == 0 && size[d] == dims[d];
      if ((step[d] != 1 && size[d] > 1) || (d > 0 && !whole)) return false;
    }
    return true;
  }
};

// A vector of integers, which may be unknown or known in part while tracing.
class Entries {
 public:
  explicit Entries(Dims values) : values_(std::move(values)) {}
  Entries(const InferContext& c, int i) : values_(c.constant_ints(i)) {
    if (values_) return;
    values_ = c.partial_ints(i);
    complete_ = false;
  }
  std::optional<int64_t> at(int i) const {
    if (!values_) return std::nullopt;
    const int64_t value = (*values_)[static_cast<size_t>(i)];
    return complete_ || value != kUnknownDim ? std::optional(value) : std::nullopt;
  }

 private:
  std::optional<Dims> values_;
  bool complete_ = true;  // else kUnknownDim stands for what is not known
};

struct Bounds {
  Entries begin, end, step;
  int entries;
};

int64_t floor_count(int64_t begin, int64_t end, int64_t step) {
  const int64_t span = step > 0 ? end - begin : begin - end;
  const int64_t pace = step > 0 ? step : -step;
  return span <= 0 ? 0 : (span - 1) / pace + 1;
}

// The range of entry i over a dimension of size n.
void range_of(const Bounds& b, const StridedSliceMasks& m, int i, int64_t n, Box& box) {
  const auto known_step = b.step.at(i), from = b.begin.at(i), to = b.end.at(i);
  const int64_t step = known_step.value_or(1);
  if (step == 0) throw invalid_argument("strides[{}] is zero", i);
  const bool no_begin = bit(m.begin_mask, i), no_end = bit(m.end_mask, i);
  if (n < 0 || !known_step || (!no_begin && !from) || (!no_end && !to)) {
    const bool all = no_begin && no_end && known_step && step == 1;
    box.begin.push_back(0);
    box.step.push_back(step);
    box.size.push_back(all ? n : kUnknownDim);
    box.shape.push_back(all ? n : kUnknownDim);
    box.is_static = box.is_static && all && n >= 0;
    return;
  }
  // Python's rule: bounds count from the end when negative and are clamped to what the direction can reach.
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? n : n - 1;
  auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
  const int64_t begin = no_begin ? (step > 0 ? low : high) : bound(*from);
  const int64_t end = no_end ? (step > 0 ? high : low) : bound(*to);
  const int64_t size = floor_count(begin, end, step);
  box.begin.push_back(size == 0 ? std::clamp<int64_t>(begin, 0, n) : begin);
  box.step.push_back(step);
  box.size.push_back(size);
  box.shape.push_back(size);
}

// The position of entry i in dimension d of size n.
void position_of(const Bounds& b, int i, int d, int64_t n, Box& box) {
  int64_t at = 0;
  const auto asked = b.begin.at(i), step = b.step.at(i);
  if (asked && n >= 0) {
    at = *asked < 0 ? *asked + n : *asked;
    if (at < 0 || at >= n) {
      throw Error(Code::out_of_range,
                  fmt::format("index {} is out of range for dimension {} of size {}", *asked, d, n));
    }
  } else {
    box.is_static = false;
  }
  if (step && *step < 1) throw invalid_argument("a position (index {}) needs stride 1", i);
  box.begin.push_back(at);
  box.step.push_back(1);
  box.size.push_back(1);
}

Box resolve(const PartialShape& x, const Bounds& b, const StridedSliceMasks& m) {
  if (std::popcount(static_cast<uint32_t>(m.ellipsis_mask)) > 1) {
    throw invalid_argument("more than one ellipsis");
  }
  int ellipsis = -1;
  int named = 0;
  for (int i = 0; i < b.entries; ++i) {
    if (bit(m.ellipsis_mask, i)) {
      ellipsis = i;
    } else if (!bit(m.new_axis_mask, i)) {
      ++named;
    }
  }
  if (named > x.rank()) throw invalid_argument("{} indices for a tensor of rank {}", named, x.rank());
  Box box;
  int d = 0;
  auto take_all = [&](int until) {
    for (; d < until; ++d) {
      box.begin.push_back(0);
      box.step.push_back(1);
      box.size.push_back(x[d]);
      box.shape.push_back(x[d]);
      box.is_static = box.is_static && x[d] >= 0;
    }
  };
  const int gap = x.rank() - named;
  for (int i = 0; i < b.entries; ++i) {
    if (i == ellipsis) {
      take_all(d + gap);
    } else if (bit(m.new_axis_mask, i)) {
      box.shape.push_back(1);
    } else if (bit(m.shrink_axis_mask, i)) {
      position_of(b, i, d, x[d], box);
      ++d;
    } else {
      range_of(b, m, i, x[d], box);
      ++d;
    }
  }
  take_all(x.rank());
  return box;
}

Bounds bounds_of(const InferContext& c, int first) {
  Bounds b{Entries(c, first), Entries(c, first + 1), Entries(c, first + 2), -1};
  for (int i = first; i < first + 3; ++i) {
    c.require_rank(i, 1);
    const PartialShape& s = c.input(i);
    if (!s.has_rank() || s[0] < 0) continue;
    if (b.entries >= 0 && b.entries != s[0]) {
      throw invalid_argument("begin, end and strides differ in length: {} and {}", b.entries, s[0]);
    }
    b.entries = static_cast<int>(s[0]);
  }
  return b;
}

Box resolve_values(KernelContext& c, int first, const Shape& shape, const MaskAttrs& a) {
  const Bounds b{Entries(c.ints(first)), Entries(c.ints(first + 1)), Entries(c.ints(first + 2)),
                 static_cast<int>(c.in(first).num_elements())};
  return resolve(shape, b, a);
}

// Offset of the box's first element, and the strides of its elements, in a dense tensor of shape `dims`.
int64_t offset_of(const Box& box, const Dims& dense) {
  int64_t at = 0;
  for (size_t d = 0; d < dense.size(); ++d) at += box.begin[d] * dense[d];
  return at;
}
Dims strides_of(const Box& box, Dims dense) {
  for (size_t d = 0; d < dense.size(); ++d) dense[d] *= box.step[d];
  return dense;
}

void take_box(KernelContext& c, const Tensor& x, const Box& box) {
  const Dims& dims = x.shape().dims();
  const Shape shape(box.shape);
  if (dims.empty()) return c.forward(0, x.with_shape(shape));
  if (box.is_leading_range(dims)) {
    return c.forward(0, x.rows(box.begin[0], box.begin[0] + box.size[0]).with_shape(shape));
  }
  Tensor& out = c.allocate(0, shape);
  const Dims dense = cpu::dense_strides(dims);
  cpu::copy_strided(x.dtype(), box.size, cpu::element_at(x.raw(), x.dtype(), offset_of(box, dense)),
                    strides_of(box, dense), out.mutable_data<char>(), cpu::dense_strides(box.size));
}

// begin and size of a Slice as a box; a size of -1 is the rest.
Box slice_box(const PartialShape& x, const Dims& begin, const Dims& size) {
  if (static_cast<int>(begin.size()) != x.rank() || begin.size() != size.size()) {
    throw invalid_argument("begin has {} entries and size {}, the tensor has rank {}", begin.size(), size.size(),
                           x.rank());
  }
  Box box;
  for (int d = 0; d < x.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    int64_t n = size[i];
    if (n == -1) n = x[d] < 0 ? kUnknownDim : x[d] - begin[i];
    const bool bad = begin[i] < 0 || size[i] < -1 || (x[d] >= 0 && (n < 0 || begin[i] + n > x[d]));
    if (bad) {
      throw invalid_argument("begin {} and size {} do not lie within dimension {} of size {}", begin[i], size[i], d,
                             x[d]);
    }
    box.begin.push_back(begin[i]);
    box.step.push_back(1);
    box.size.push_back(n);
  }
  box.shape = box.size;
  return box;
}

Tensor strided_slice_grad(const GradCtx& g, const MaskAttrs& a) {
  static const Op<MaskAttrs> op("StridedSliceGrad");
  if (!index_types.contains(g.x(1).dtype())) {  // no shape has that dtype
    const auto wide = [](const Tensor& t) { return cast(t, DType::int32); };
    return op({shape(g.x(0)), wide(g.x(1)), wide(g.x(2)), wide(g.x(3)), g.dy()}, a);
  }
  const Tensor sizes = shape(g.x(0), g.x(1).dtype());
  return op({sizes, g.x(1), g.x(2), g.x(3), g.dy()}, a);
}

}  // namespace

void register_array_slice(Registry& r) {
  r.define("Slice")
      .in("input", all_types)
      .type("Index", index_types)
      .in_host("begin", "Index")
      .in_host("size", "Index")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        c.require_rank(1, 1);
        c.require_rank(2, 1);
        const PartialShape& x = c.input(0);
        const auto begin = c.constant_ints(1), size = c.constant_ints(2);
        if (x.has_rank() && begin && size) return c.output(PartialShape(slice_box(x, *begin, *size).shape));
        // A size that is not known and one of -1 both give a size that is not known.
        const auto sizes = c.partial_ints(2);
        if (sizes && std::all_of(sizes->begin(), sizes->end(), [](int64_t n) { return n >= -1; })) {
          return c.output(PartialShape(*sizes));
        }
        c.output(x.has_rank() ? PartialShape::unknown_dims(x.rank()) : x);
      })
      .forwards()
      .cpu([](KernelContext& c) { take_box(c, c.in(0), slice_box(c.in(0).shape(), c.ints(1), c.ints(2))); })
      .grad([](const GradCtx& g) {
        // Zeros around dy: as many before as were skipped, as many after as are left.
        const auto begin = static_ints(g.x(1));
        const PartialShape from = g.x(0).partial_shape(), to = g.y().partial_shape();
        if (begin && from.is_static() && to.is_static()) {
          Tensor paddings = Tensor::empty(DType::int64, {from.rank(), 2});
          for (int d = 0; d < from.rank(); ++d) {
            const int64_t before = (*begin)[static_cast<size_t>(d)];
            paddings.mutable_data<int64_t>()[2 * d] = before;
            paddings.mutable_data<int64_t>()[2 * d + 1] = from[d] - before - to[d];
          }
          return Gradients{pad(g.dy(), paddings), {}, {}};
        }
        const DType index = g.x(1).dtype();
        const Tensor after = shape(g.x(0), index) - g.x(1) - shape(g.y(), index);
        return Gradients{pad(g.dy(), stack({g.x(1), after}, 1)), {}, {}};
      })
      .doc("Of every dimension `size` elements from `begin`; a size of -1 means the rest.")
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{0, 1}, Tensor{2, 2}},
               .out = {Tensor{{2.f, 3.f}, {5.f, 6.f}}}})
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{1}, Tensor{-1}}, .out = {Tensor{2.f, 3.f}}})
      .sample(
          {.in = {Tensor{1.f, 2.f, 3.f}, Tensor{2}, Tensor{2}}, .error = "do not lie within dimension 0 of size 3"});

  r.define<MaskAttrs>("StridedSlice")
      .in("input", all_types)
      .type("Index", narrow_index_types)
      .in_host("begin", "Index")
      .in_host("end", "Index")
      .in_host("strides", "Index")
      .out("output")
      .moves()
      .shape([](InferContext& c, const MaskAttrs& a) {
        const Bounds b = bounds_of(c, 1);
        if (!c.input(0).has_rank() || b.entries < 0) return c.output(PartialShape::unknown());
        c.output(PartialShape(resolve(c.input(0), b, a).shape));
      })
      .forwards()
      .cpu([](KernelContext& c, const MaskAttrs& a) { take_box(c, c.in(0), resolve_values(c, 1, c.in(0).shape(), a)); })
      .grad([](const GradCtx& g, const MaskAttrs& a) {
        return Gradients{strided_slice_grad(g, a), {}, {}, {}};
      })
      .doc("Python's x[begin:end:strides], with masks for missing bounds, new axes, positions and the ellipsis.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f, 4.f}, Tensor{3}, Tensor{0}, Tensor{-2}}, .out = {Tensor{4.f, 2.f}}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}, Tensor{0, 1}, Tensor{0, 2}, Tensor{1, 1}},
               .out = {Tensor{2.f, 5.f}}},
              {{.begin_mask = 1, .end_mask = 1, .shrink_axis_mask = 2}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 0, 1}, Tensor{0, 0, 2}, Tensor{1, 1, 1}},
               .out = {Tensor{{{2.f}, {4.f}}}}},
              {{.ellipsis_mask = 2, .new_axis_mask = 1}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{2}, Tensor{3}, Tensor{1}},
               .error = "index 2 is out of range for dimension 0 of size 2"},
              {{.shrink_axis_mask = 1}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{0}, Tensor{2}, Tensor{0}}, .error = "strides[0] is zero"});

  r.define<MaskAttrs>("StridedSliceGrad")
      .type("T", all_types)
      .type("Index", index_types)
      .in_host("shape", "Index")
      .in_host("begin", "Index")
      .in_host("end", "Index")
      .in_host("strides", "Index")
      .in("dy", "T")
      .out("output")
      .shape([](InferContext& c) {
        for (int i = 0; i < 4; ++i) c.require_rank(i, 1);
        const PartialShape entries = c.input(1).merged_with(c.input(2));
        if (!entries.compatible_with(c.input(3))) {
          throw invalid_argument("strides have shape {}, begin and end {}", c.input(3).str(), entries.str());
        }
        c.output(constant_sizes(c, 0));
      })
      .cpu([](KernelContext& c, const MaskAttrs& a) {
        Tensor& out = c.out();
        const Box box = resolve_values(c, 1, out.shape(), a);
        if (!(Shape(box.shape) == c.in(4).shape())) {
          throw invalid_argument("dy has shape {}, the slice {}", c.in(4).shape().str(), Shape(box.shape).str());
        }
        if (is_plain(out.dtype())) std::memset(out.mutable_data<char>(), 0, out.num_bytes());
        const Dims dense = cpu::dense_strides(out.shape().dims());
        cpu::copy_strided(
            out.dtype(), box.size, c.in(4).raw(), cpu::dense_strides(box.size),
            cpu::element_at(static_cast<void*>(out.mutable_data<char>()), out.dtype(), offset_of(box, dense)),
            strides_of(box, dense));
      })
      .grad([](const GradCtx& g, const MaskAttrs& a) {
        return Gradients{{}, {}, {}, {}, strided_slice(g.dy(), g.x(1), g.x(2), g.x(3), a)};
      })
      .doc("Zeros of the given shape with dy where StridedSlice would take it from.")
      .sample(
          {.in = {Tensor{4}, Tensor{3}, Tensor{0}, Tensor{-2}, Tensor{5.f, 6.f}}, .out = {Tensor{0.f, 6.f, 0.f, 5.f}}})
      .sample({.in = {Tensor{2, 2}, Tensor{0, 1}, Tensor{0, 2}, Tensor{1, 1}, Tensor{5.f, 6.f}},
               .out = {Tensor{{0.f, 5.f}, {0.f, 6.f}}}},
              {{.begin_mask = 1, .end_mask = 1, .shrink_axis_mask = 2}})
      .sample({.in = {Tensor{4}, Tensor{0}, Tensor{3}, Tensor{1}, Tensor{5.f}},
               .error = "dy has shape [1], the slice [3]"});
}

Tensor slice(const Operand& input, const ShapeArg& begin, const ShapeArg& size) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op op("Slice");
    Tensor bounds[] = {begin.tensor(), size.tensor()};
    unify_index_types(bounds);
    return op({input, bounds[0], bounds[1]});
  });
}

Tensor strided_slice(const Operand& input, const ShapeArg& begin, const ShapeArg& end, const ShapeArg& strides,
                     const StridedSliceMasks& masks) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op<MaskAttrs> op("StridedSlice");
    Tensor bounds[] = {begin.tensor(), end.tensor(), strides.tensor()};
    unify_index_types(bounds);
    return op({input, bounds[0], bounds[1], bounds[2]}, MaskAttrs{masks});
  });
}

Tensor strided_slice(const Operand& input, const ShapeArg& begin, const ShapeArg& end) {
  return composed(input.where(), [&]() -> Tensor {
    const Tensor from = begin.tensor();
    return strided_slice(input, from, end, ones_like(from));
  });
}

}  // namespace runnel
