// Strings of a tensor joined along dimensions or by segments.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/string_kernels.h"
#include "runnel/ops/strings.h"

namespace runnel {
namespace {

struct ReduceJoinAttrs {
  bool keep_dims = false;
  std::string separator;
  static constexpr auto fields() {
    return field_list(field("keep_dims", &ReduceJoinAttrs::keep_dims), field("separator", &ReduceJoinAttrs::separator));
  }
};
struct SegmentJoinAttrs {
  std::string separator;
  static constexpr auto fields() { return field_list(field("separator", &SegmentJoinAttrs::separator)); }
};

// The axes as positions, in the order given: the first is joined first. An axis may come once.
std::vector<int> join_axes(const Dims& given, int rank) {
  std::vector<int> axes;
  for (int64_t axis : given) {
    axes.push_back(normalize_axis(axis, rank));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) {
      throw invalid_argument("reduction_indices name axis {} twice", axis);
    }
  }
  return axes;
}

void reduce_join(KernelContext& c, const ReduceJoinAttrs& a) {
  const Shape& s = c.in(0).shape();
  const std::vector<int> axes = join_axes(c.ints(1), s.rank());
  Dims strides(static_cast<size_t>(s.rank()), 1);
  for (int d = s.rank() - 2; d >= 0; --d)
    strides[static_cast<size_t>(d)] = strides[static_cast<size_t>(d) + 1] * s[d + 1];
  std::vector<int> kept;
  for (int d = 0; d < s.rank(); ++d) {
    if (std::count(axes.begin(), axes.end(), d) == 0) kept.push_back(d);
  }
  int64_t joined = 1;
  for (int d : axes) joined *= s[d];
  const Bytes* in = c.in<Bytes>(0);
  write_strings(c.out(), [&](int64_t i, StringWriter& writer) {
    int64_t base = 0;
    int64_t rest = i;
    for (auto d = kept.rbegin(); d != kept.rend(); rest /= s[*d], ++d)
      base += rest % s[*d] * strides[static_cast<size_t>(*d)];
    for (int64_t k = 0; k < joined; ++k) {
      int64_t at = base;
      int64_t left = k;
      for (int d : axes) {
        at += left % s[d] * strides[static_cast<size_t>(d)];
        left /= s[d];
      }
      if (k > 0) writer.text() += a.separator;
      writer.text() += in[at].view();
    }
    writer.end();
  });
}

void segment_join(KernelContext& c, const SegmentJoinAttrs& a) {
  const Dims ids = c.ints(1);
  const int64_t segments = c.int_scalar(2);
  const auto n = static_cast<int64_t>(ids.size());
  for (int64_t id : ids) {
    if (id < 0 || id >= segments) throw invalid_argument("segment id {} is not in [0, {})", id, segments);
  }
  const int64_t width = segments == 0 ? 0 : c.out().num_elements() / segments;
  std::vector<std::string> text(static_cast<size_t>(segments * width));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = ids[static_cast<size_t>(i)];
    for (int64_t k = 0; k < width; ++k) {
      std::string& to = text[static_cast<size_t>(id * width + k)];
      if (!to.empty()) to += a.separator;  // as TensorFlow: none after empty strings
      to += c.in<Bytes>(0)[i * width + k].view();
    }
  }
  for (size_t i = 0; i < text.size(); ++i) c.out<Bytes>()[i] = std::move(text[i]);
}

}  // namespace

void register_string_join(Registry& r) {
  const Tensor square{{"a", "b"}, {"c", "d"}};
  r.define<ReduceJoinAttrs>("ReduceJoin")
      .in("inputs", DType::string)
      .in_host("reduction_indices", DType::int32)
      .out("output", DType::string)
      .shape([](InferContext& c, const ReduceJoinAttrs& a) {
        const PartialShape& s = c.input(0);
        const auto given = c.constant_ints(1);
        if (!s.has_rank()) return c.output(PartialShape::unknown());
        if (!given) return c.output(a.keep_dims ? PartialShape::unknown_dims(s.rank()) : PartialShape::unknown());
        const std::vector<int> axes = join_axes(*given, s.rank());
        Dims dims;
        for (int d = 0; d < s.rank(); ++d) {
          const bool joined = std::count(axes.begin(), axes.end(), d) > 0;
          if (!joined || a.keep_dims) dims.push_back(joined ? 1 : s[d]);
        }
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c, const ReduceJoinAttrs& a) { reduce_join(c, a); })
      .doc("The strings along the given axes joined, the first axis named first.")
      .sample({.in = {square, Tensor(0)}, .out = {Tensor{"ac", "bd"}}})
      .sample({.in = {square, Tensor(-1)}, .out = {Tensor{{"a b"}, {"c d"}}}}, {.keep_dims = true, .separator = " "})
      .sample({.in = {square, Tensor{0, 1}}, .out = {Tensor("acbd")}})
      .sample({.in = {square, Tensor{1, 0}}, .out = {Tensor("a.b.c.d")}}, {.separator = "."})
      .sample({.in = {square, Tensor{0, -2}}, .error = "twice"})
      .sample({.in = {square, Tensor(2)}, .error = "out of range"});

  r.define<SegmentJoinAttrs>("UnsortedSegmentJoin")
      .in("inputs", DType::string)
      .type("Tindices", index_types)
      .in_host("segment_ids", "Tindices")
      .type("Tnumsegments", index_types, DType::int32)
      .in_host("num_segments", "Tnumsegments")
      .out("output", DType::string)
      .shape([](InferContext& c, const SegmentJoinAttrs&) {
        const PartialShape &data = c.input(0), &ids = c.input(1);
        c.require_rank(2, 0);
        const auto segments = c.constant_ints(2);
        if (segments && (*segments)[0] < 0) throw invalid_argument("num_segments is {}", (*segments)[0]);
        if (!data.has_rank() || !ids.has_rank()) return c.output(PartialShape::unknown());
        if (ids.rank() == 0) throw invalid_argument("segment_ids need a dimension, got a scalar");
        bool fits = ids.rank() <= data.rank();
        for (int i = 0; fits && i < ids.rank(); ++i) fits = ids[i] < 0 || data[i] < 0 || ids[i] == data[i];
        if (!fits) {
          throw invalid_argument("segment_ids {} do not fit the leading dimensions of inputs {}", ids.str(),
                                 data.str());
        }
        Dims dims{segments ? (*segments)[0] : kUnknownDim};
        dims.insert(dims.end(), data.begin() + ids.rank(), data.end());
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c, const SegmentJoinAttrs& a) { segment_join(c, a); })
      .doc("String i is the strings of the inputs with id i joined in their order; empty without any.")
      .sample({.in = {Tensor{"a", "b", "c"}, Tensor{1, 0, 1}, Tensor(3)}, .out = {Tensor{"b", "a:c", ""}}},
              {.separator = ":"})
      .sample({.in = {square, Tensor{0, 0}, Tensor(1)}, .out = {Tensor{{"ac", "bd"}}}})
      .sample({.in = {square, Tensor{0, 1}, Tensor(1)}, .error = "segment id 1 is not in [0, 1)"})
      .sample({.in = {square, Tensor{0, 0, 0}, Tensor(1)}, .error = "do not fit"})
      .sample({.in = {square, Tensor(0), Tensor(1)}, .error = "need a dimension"});
}

namespace strings {

Tensor reduce_join(const Operand& inputs, const Axes& axis, bool keepdims, const std::string& separator) {
  return composed(inputs.where(), [&]() -> Tensor {
    static const Op<ReduceJoinAttrs> op("ReduceJoin");
    const Tensor x = inputs.value();
    const ReduceJoinAttrs attrs{.keep_dims = keepdims, .separator = separator};
    if (axis.given()) return op({x, axis.tensor_for(x)}, attrs);
    const Tensor n = rank(x);  // the last axis first: the order of the elements
    return op({x, range(n - 1, Tensor(-1), Tensor(-1))}, attrs);
  });
}

Tensor unsorted_segment_join(const Operand& inputs, const Operand& segment_ids, const Operand& num_segments,
                             const std::string& separator) {
  static const Op<SegmentJoinAttrs> op("UnsortedSegmentJoin");
  return op({inputs, segment_ids, num_segments}, {.separator = separator});
}

}  // namespace strings
}  // namespace runnel
