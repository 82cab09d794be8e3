// Padding: Pad, PadV2, MirrorPad; and Tile.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct MirrorPadAttrs {
  std::string mode = "REFLECT";
  static constexpr auto fields() {
    return field_list(field("mode", &MirrorPadAttrs::mode, {.required = true, .texts = "REFLECT|SYMMETRIC"}));
  }
};

// Paddings as pairs {before, after} of a tensor of this rank; null when they are not known yet.
std::optional<Dims> constant_paddings(const InferContext& c, int i, const PartialShape& x) {
  const PartialShape& s = c.input(i);
  if (s.has_rank() && (s.rank() != 2 || (s[1] >= 0 && s[1] != 2))) {
    throw invalid_argument("paddings must have shape [rank, 2], got {}", s.str());
  }
  if (s.has_rank() && x.has_rank() && s[0] >= 0 && s[0] != x.rank()) {
    throw invalid_argument("paddings of shape {} for a tensor of rank {}", s.str(), x.rank());
  }
  const Tensor* t = c.constant(i);
  if (!t) return std::nullopt;
  Dims pairs = int_values(*t);
  for (int64_t n : pairs) {
    if (n < 0) throw invalid_argument("a padding is negative: [{}]", comma_separated(pairs));
  }
  return pairs;
}

int64_t before(const Dims& pairs, int d) { return pairs[static_cast<size_t>(2 * d)]; }
int64_t after(const Dims& pairs, int d) { return pairs[static_cast<size_t>(2 * d + 1)]; }

void pad_shape(InferContext& c) {
  const PartialShape& x = c.input(0);
  const auto pairs = constant_paddings(c, 1, x);
  if (!x.has_rank()) {
    return c.output(pairs ? PartialShape::unknown_dims(static_cast<int>(pairs->size()) / 2) : x);
  }
  if (!pairs) return c.output(PartialShape::unknown_dims(x.rank()));
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    dims.push_back(x[d] < 0 ? kUnknownDim : checked_plus(checked_plus(x[d], before(*pairs, d)), after(*pairs, d)));
  }
  c.output(PartialShape(dims));
}

// A box of the output of a pad: where it starts and how far it goes.
struct Region {
  Dims begin, size;
  int64_t offset(const Dims& strides) const {
    int64_t at = 0;
    for (size_t d = 0; d < strides.size(); ++d) at += begin[d] * strides[d];
    return at;
  }
};

void copy_interior(const Tensor& x, const Tensor& out, const Region& inside, const Dims& strides) {
  cpu::copy_strided(x.dtype(), x.shape().dims(), x.raw(), cpu::dense_strides(x.shape().dims()),
                    cpu::element_at(static_cast<void*>(out.mutable_data<char>()), x.dtype(), inside.offset(strides)),
                    strides);
}

Region interior(const Shape& x, const Dims& pairs) {
  Region inside{{}, x.dims()};
  for (int d = 0; d < x.rank(); ++d) inside.begin.push_back(before(pairs, d));
  return inside;
}

void pad_constant(const Tensor& x, const Dims& pairs, const void* value, const Tensor& out) {
  const Dims strides = cpu::dense_strides(out.shape().dims());
  Region inside = interior(x.shape(), pairs);
  copy_interior(x, out, inside, strides);
  // Around it, dimension by dimension from the last: each pair of borders lies within the interior of the dimensions
  // before it and spans those after it, so that every element is written once.
  const Dims repeat(strides.size(), 0);
  auto border = [&](size_t d, int64_t begin, int64_t size) {
    Region box = inside;
    box.begin[d] = begin;
    box.size[d] = size;
    cpu::copy_strided(x.dtype(), box.size, value, repeat,
                      cpu::element_at(static_cast<void*>(out.mutable_data<char>()), x.dtype(), box.offset(strides)),
                      strides);
  };
  for (int d = x.rank() - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    const int64_t end = inside.begin[i] + inside.size[i];
    border(i, 0, inside.begin[i]);
    border(i, end, out.shape()[d] - end);
    inside.begin[i] = 0;
    inside.size[i] = out.shape()[d];
  }
}

// How far mirroring starts from the border: REFLECT leaves the border element out.
int64_t mirror_offset(const std::string& mode) { return mode == "REFLECT" ? 1 : 0; }

void check_mirror(int64_t n, int64_t lo, int64_t hi, int64_t offset, int d) {
  if (lo > n - offset || hi > n - offset) {
    throw invalid_argument("paddings {{{}, {}}} of dimension {} must not exceed {}: its size is {}", lo, hi, d,
                           n - offset, n);
  }
}

void pad_mirrored(const Tensor& x, const Dims& pairs, int64_t offset, const Tensor& out) {
  for (int d = 0; d < x.rank(); ++d) check_mirror(x.shape()[d], before(pairs, d), after(pairs, d), offset, d);
  const Dims strides = cpu::dense_strides(out.shape().dims());
  Region inside = interior(x.shape(), pairs);
  copy_interior(x, out, inside, strides);
  char* base = out.mutable_data<char>();
  auto mirror = [&](size_t d, int64_t to, int64_t size, int64_t from) {
    Region box = inside;
    box.size[d] = size;
    box.begin[d] = to;
    const int64_t target = box.offset(strides);
    box.begin[d] = from;
    Dims backward = strides;
    backward[d] = -backward[d];
    const int64_t source = box.offset(strides);
    cpu::copy_strided(x.dtype(), box.size, cpu::element_at(static_cast<const void*>(base), x.dtype(), source), backward,
                      cpu::element_at(static_cast<void*>(base), x.dtype(), target), strides);
  };
  for (int d = x.rank() - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    const int64_t lo = inside.begin[i], n = inside.size[i];
    mirror(i, 0, lo, lo + offset + lo - 1);
    mirror(i, lo + n, out.shape()[d] - lo - n, lo + n - 1 - offset);
    inside.begin[i] = 0;
    inside.size[i] = out.shape()[d];
  }
}

// Folds the borders back onto the elements they were mirrored from, one dimension after the other.
template <class T>
void fold_mirrored(const Tensor& dy, const Dims& pairs, int64_t offset, const Tensor& out) {
  std::vector<T> now(dy.data<T>(), dy.data<T>() + dy.num_elements());
  Dims dims = dy.shape().dims();
  for (int d = 0; d < dy.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t lo = before(pairs, d), hi = after(pairs, d), padded = dims[i], n = padded - lo - hi;
    int64_t outer = 1, inner = 1;
    for (size_t k = 0; k < i; ++k) outer *= dims[k];
    for (size_t k = i + 1; k < dims.size(); ++k) inner *= dims[k];
    std::vector<T> next(static_cast<size_t>(outer * n * inner));
    for (int64_t o = 0; o < outer; ++o) {
      const T* from = now.data() + o * padded * inner;
      T* to = next.data() + o * n * inner;
      std::copy_n(from + lo * inner, n * inner, to);
      auto fold = [&](int64_t source, int64_t target) {
        for (int64_t k = 0; k < inner; ++k) {
          to[target * inner + k] = static_cast<T>(to[target * inner + k] + from[source * inner + k]);
        }
      };
      for (int64_t b = 0; b < lo; ++b) fold(b, offset + lo - 1 - b);
      for (int64_t b = 0; b < hi; ++b) fold(lo + n + b, n - 1 - offset - b);
    }
    dims[i] = n;
    now = std::move(next);
  }
  std::copy(now.begin(), now.end(), out.mutable_data<T>());
}

// The part of dy that stands where the padded tensor did.
Tensor unpadded(const Tensor& dy, const Tensor& x, const Tensor& paddings) {
  const auto pairs = static_ints(paddings);
  const PartialShape s = x.partial_shape();
  if (pairs && s.is_static()) {
    Dims begin;
    for (int d = 0; d < s.rank(); ++d) begin.push_back(before(*pairs, d));
    return runnel::slice(dy, begin, s.dims());
  }
  return runnel::slice(dy, paddings(all, 0), shape(x, paddings.dtype()));
}

Tensor mirror_pad_grad(const Tensor& dy, const Tensor& paddings, const MirrorPadAttrs& a) {
  static const Op<MirrorPadAttrs> op("MirrorPadGrad");
  return op({dy, paddings}, a);
}

}  // namespace

void register_array_pad(Registry& r) {
  r.define("Pad")
      .in("input", data_types)
      .in_host("paddings", "Tpaddings")
      .out("output")
      .shape(pad_shape)
      .cpu([](KernelContext& c) {
        alignas(16) const char zero[16] = {};
        const Bytes empty;
        const bool text = c.in(0).dtype() == DType::string;
        pad_constant(c.in(0), c.ints(1), text ? static_cast<const void*>(&empty) : zero, c.out());
      })
      .grad([](const GradCtx& g) {
        return Gradients{unpadded(g.dy(), g.x(0), g.x(1)), {}};
      })
      .grad_reads({})
      .doc("Zeros before and after each dimension: paddings[d] = {before, after}.")
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{{1, 0}, {0, 2}}},
               .out = {Tensor{{0.f, 0.f, 0.f, 0.f}, {1.f, 2.f, 0.f, 0.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{1, 1}}}, .out = {Tensor{0.f, 1.f, 2.f, 0.f}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{-1, 1}}}, .error = "a padding is negative"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{1, 1}, {1, 1}}}, .error = "for a tensor of rank 1"});

  r.define("PadV2")
      .in("input", data_types)
      .in_host("paddings", "Tpaddings")
      .in("constant_values")
      .out("output")
      .shape([](InferContext& c) {
        c.require_rank(2, 0);
        pad_shape(c);
      })
      .cpu([](KernelContext& c) { pad_constant(c.in(0), c.ints(1), c.in(2).raw(), c.out()); })
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy();
        const Tensor inside = unpadded(dy, g.x(0), g.x(1));
        return Gradients{inside, {}, g.want(2, [&] { return reduce_sum(dy) - reduce_sum(inside); })};
      })
      .doc("A value before and after each dimension: paddings[d] = {before, after}.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{1, 2}}, Tensor(9.f)}, .out = {Tensor{9.f, 1.f, 2.f, 9.f, 9.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{{0, 1}, {1, 0}}, Tensor(9.f)},
               .out = {Tensor{{9.f, 1.f}, {9.f, 2.f}, {9.f, 9.f}}}});

  r.define<MirrorPadAttrs>("MirrorPad")
      .in("input", data_types)
      .in_host("paddings", "Tpaddings")
      .out("output")
      .shape(pad_shape)
      .cpu([](KernelContext& c, const MirrorPadAttrs& a) {
        pad_mirrored(c.in(0), c.ints(1), mirror_offset(a.mode), c.out());
      })
      .grad([](const GradCtx& g, const MirrorPadAttrs& a) {
        return Gradients{mirror_pad_grad(g.dy(), g.x(1), a), {}};
      })
      .doc("The tensor mirrored at its borders: REFLECT without the border elements, SYMMETRIC with them.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{{2, 1}}}, .out = {Tensor{3.f, 2.f, 1.f, 2.f, 3.f, 2.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{0, 1}, {1, 2}}},
               .out = {Tensor{{1.f, 1.f, 2.f, 2.f, 1.f}, {3.f, 3.f, 4.f, 4.f, 3.f}, {3.f, 3.f, 4.f, 4.f, 3.f}}}},
              {.mode = "SYMMETRIC"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{2, 0}}}, .error = "must not exceed 1"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{1, 0}}}, .error = "\"REFLECT\", \"SYMMETRIC\""}, {.mode = "WRAP"});

  r.define<MirrorPadAttrs>("MirrorPadGrad")
      .in("input", numbers)
      .in_host("paddings", "Tpaddings")
      .out("output")
      .shape([](InferContext& c, const MirrorPadAttrs& a) {
        const int64_t offset = mirror_offset(a.mode);
        const PartialShape& dy = c.input(0);
        const auto pairs = constant_paddings(c, 1, dy);
        if (!dy.has_rank() || !pairs) {
          return c.output(dy.has_rank() ? PartialShape::unknown_dims(dy.rank()) : dy);
        }
        Dims dims;
        for (int d = 0; d < dy.rank(); ++d) {
          const int64_t lo = before(*pairs, d), hi = after(*pairs, d);
          if (dy[d] >= 0) check_mirror(dy[d] - lo - hi, lo, hi, offset, d);
          dims.push_back(dy[d] < 0 ? kUnknownDim : dy[d] - lo - hi);
        }
        c.output(PartialShape(dims));
      })
      .cpu([]<class T>(KernelContext& c, const MirrorPadAttrs& a) {
        fold_mirrored<T>(c.in(0), c.ints(1), mirror_offset(a.mode), c.out());
      })
      .grad([](const GradCtx& g, const MirrorPadAttrs& a) {
        return Gradients{pad(g.dy(), g.x(1), a.mode), {}};
      })
      .doc("The gradient of MirrorPad: borders added to the elements they mirror.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, Tensor{{2, 1}}}, .out = {Tensor{3.f, 12.f, 6.f}}})
      .sample({.in = {Tensor{1.f, 2.f, 3.f, 4.f}, Tensor{{1, 1}}}, .out = {Tensor{3.f, 7.f}}}, {.mode = "SYMMETRIC"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{{1, 0}}}, .error = "must not exceed 0"});
}

Tensor pad(const Operand& tensor, const Operand& paddings, std::string_view mode, const Operand& constant_values) {
  static const Op zeros("Pad");
  static const Op value("PadV2");
  static const Op<MirrorPadAttrs> mirror("MirrorPad");
  std::string upper(mode);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char ch) { return std::toupper(ch); });
  if (upper != "CONSTANT") return mirror({tensor, paddings}, {.mode = upper});
  const bool is_zero = constant_values.is_literal() && constant_values.natural_dtype() == DType::int32 &&
                       constant_values.as(DType::int32).item<int32_t>() == 0;
  return is_zero ? zeros({tensor, paddings}) : value({tensor, paddings, constant_values});
}

}  // namespace runnel
