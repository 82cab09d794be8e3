#include "runnel/kernels/cpu/conv_plan.h"

#include <algorithm>
#include <cstring>

namespace runnel::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

memory::desc activations(const ConvShape& s, bool output, bool any, Type type) {
  memory::dims dims{s.batch, output ? s.out_channels : s.in_channels};
  for (int d = 0; d < s.dims; ++d) dims.push_back(output ? s.out(d) : s.in[d]);
  return {dims, type, any ? Tag::any : s.dims == 2 ? Tag::nhwc : Tag::ndhwc};
}

// The user's [kernel..., in / groups, out]; flipped, the same memory read with in and out exchanged: then it is the
// weight of the convolution that runs backwards, up to the order of the taps.
memory::desc weights(const ConvShape& s, bool any, bool flipped, Type type) {
  const int64_t icg = s.in_channels / s.groups, ocg = s.out_channels / s.groups;
  memory::dims dims, strides;
  if (s.groups > 1) {
    dims.push_back(s.groups);
    strides.push_back(ocg);
  }
  dims.insert(dims.end(), {ocg, icg});
  if (flipped) {
    strides.insert(strides.end(), {s.in_channels, 1});
  } else {
    strides.insert(strides.end(), {1, s.out_channels});
  }
  int64_t step = icg * s.out_channels;
  memory::dims taps(static_cast<size_t>(s.dims));
  for (int d = s.dims - 1; d >= 0; --d) {
    taps[static_cast<size_t>(d)] = step;
    step *= s.kernel[d];
  }
  for (int d = 0; d < s.dims; ++d) {
    dims.push_back(s.kernel[d]);
    strides.push_back(taps[static_cast<size_t>(d)]);
  }
  if (any) return {dims, type, Tag::any};
  return {dims, type, strides};
}

Reordered reordered(const memory::desc& user, const memory::desc& inner) {
  Reordered r;
  r.user = user;
  r.inner = inner;
  r.same = user == inner;
  if (r.same) return r;
  const dnnl::engine& e = dnnl_engine();
  const dnnl::reorder::primitive_desc forth(e, user, e, inner, user_scratchpad());
  const dnnl::reorder::primitive_desc back(e, inner, e, user, user_scratchpad());
  r.forth = dnnl::reorder(forth);
  r.back = dnnl::reorder(back);
  r.forth_scratch = forth.scratchpad_desc();
  r.back_scratch = back.scratchpad_desc();
  return r;
}

struct Builder {
  ConvKind kind;
  ConvLayout layout;
  bool flipped;
  Type type;

  // Throws dnnl::error where oneDNN has nothing; returns false where it has only its reference loops.
  bool make(const ConvShape& s, const memory::desc* weights_like, ConvPart& part) const {
    const Type of_weights = kind == ConvKind::backward_weights ? Type::f32 : type;
    if (layout == ConvLayout::outer) {
      part.shape = s;
      part.w = reordered(weights(s, false, false, of_weights), weights(s, false, false, of_weights));
      return true;
    }
    const bool any_x = layout == ConvLayout::any;
    const auto x = activations(s, false, any_x, type), y = activations(s, true, any_x, type);
    const auto w = weights_like ? *weights_like : weights(s, layout != ConvLayout::plain, flipped, of_weights);
    const memory::desc no_bias;
    memory::dims stride, dilation, before, after;
    for (int d = 0; d < s.dims; ++d) {
      stride.push_back(s.stride[d]);
      dilation.push_back(s.dilation[d] - 1);
      before.push_back(s.pad_before[d]);
      // What the kernel never reaches is not padding to oneDNN.
      after.push_back((s.out(d) - 1) * s.stride[d] + s.extent(d) - s.in[d] - s.pad_before[d]);
    }
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::engine& e = dnnl_engine();
    const dnnl::primitive_attr attr = user_scratchpad();
    part.shape = s;
    auto finish = [&](const auto& pd, dnnl::primitive primitive, const memory::desc& px, const memory::desc& pw,
                      const memory::desc& py) {
      if (std::strstr(pd.impl_info_str(), "ref")) return false;
      part.primitive = std::move(primitive);
      part.scratchpad = pd.scratchpad_desc();
      part.x = reordered(activations(s, false, false, type), px);
      part.y = reordered(activations(s, true, false, type), py);
      part.w = reordered(weights(s, false, flipped, of_weights), pw);
      part.lanes16 = s.dims == 2 && s.groups == 1 && s.in_channels % 16 == 0 && s.out_channels % 16 == 0 &&
                     pw == memory::desc(pw.dims(), Type::f32, Tag::OIhw16i16o);
      return true;
    };
    const auto prop = dnnl::prop_kind::forward_training;
    // As a hint for the backward weights, with weights of the type of the rest.
    const auto w_forward = of_weights == type ? w : weights(s, true, flipped, type);
    const dnnl::convolution_forward::primitive_desc forward(
        {prop, direct, x, w_forward, no_bias, y, stride, dilation, before, after}, attr, e);
    if (kind == ConvKind::forward) {
      return finish(forward, dnnl::convolution_forward(forward), forward.src_desc(), forward.weights_desc(),
                    forward.dst_desc());
    }
    if (kind == ConvKind::backward_data) {
      const dnnl::convolution_backward_data::primitive_desc pd({direct, x, w, y, stride, dilation, before, after}, attr,
                                                               e, forward);
      return finish(pd, dnnl::convolution_backward_data(pd), pd.diff_src_desc(), pd.weights_desc(), pd.diff_dst_desc());
    }
    const dnnl::convolution_backward_weights::primitive_desc pd({direct, x, w, y, stride, dilation, before, after},
                                                                attr, e, forward);
    return finish(pd, dnnl::convolution_backward_weights(pd), pd.src_desc(), pd.diff_weights_desc(),
                  pd.diff_dst_desc());
  }
};

// Into how many pieces a convolution is cut: by shape alone.
struct Cut {
  int64_t batches;  // parts of the batch
  int64_t rows;     // parts of the first spatial output dimension; above 1 only with one image per part
};

Cut choose_cut(ConvKind kind, const ConvShape& s) {
  const bool weights = kind == ConvKind::backward_weights;
  const double flops = 2.0 * static_cast<double>(s.weight_size()) * static_cast<double>(s.batch * s.out_spatial());
  double wanted = std::min(flops / 12e6, weights ? 8.0 : 16.0);
  if (flops > 3e6) wanted = std::max(wanted, 2.0);
  // Each part of a weight gradient costs passes over the weights (3 ms in two parts, 4.3 in eight on 14x14x32->64).
  if (weights) wanted = std::min(wanted, std::max(2.0, static_cast<double>(s.batch * s.out_spatial()) / 4096));
  int64_t parts = std::max<int64_t>(1, static_cast<int64_t>(wanted));
  if (parts > 1) parts += parts % 2;
  Cut cut{std::min(parts, s.batch), 1};
  bool inside = true;  // pieces at the border still see some input
  for (int d = 0; d < s.dims; ++d) inside = inside && s.pad_before[d] < s.extent(d) && s.pad_after[d] < s.extent(d);
  if (s.batch < std::min<int64_t>(parts, 4) && inside && kind != ConvKind::backward_data) {
    cut.rows = std::min({(parts + s.batch - 1) / s.batch, 4 / s.batch, s.out(0) / 2});
    cut.rows = std::max<int64_t>(cut.rows, 1);
    if (cut.rows > 1) cut.batches = s.batch;
  }
  return cut;
}

// Rows [begin, end) of the first output dimension of one image, as a convolution of its own.
ConvShape row_piece(const ConvShape& s, int64_t begin, int64_t end, int64_t* first_in) {
  ConvShape p = s;
  p.batch = 1;
  const int64_t from = begin * s.stride[0] - s.pad_before[0];
  const int64_t to = (end - 1) * s.stride[0] - s.pad_before[0] + s.extent(0);
  *first_in = std::max<int64_t>(from, 0);
  p.pad_before[0] = std::max<int64_t>(-from, 0);
  p.pad_after[0] = std::max<int64_t>(to - s.in[0], 0);
  p.in[0] = std::min(to, s.in[0]) - *first_in;
  return p;
}

bool same_piece(const ConvShape& a, const ConvShape& b) {
  return a.batch == b.batch && a.in == b.in && a.pad_before == b.pad_before && a.pad_after == b.pad_after;
}

std::shared_ptr<const ConvPlan> build(const Builder& builder, const ConvShape& s) {
  auto plan = std::make_shared<ConvPlan>();
  const OneThread guard;
  auto add = [&](const ConvShape& piece, int64_t x_offset, int64_t y_offset) {
    size_t i = 0;
    while (i < plan->parts.size() && !same_piece(plan->parts[i].shape, piece)) ++i;
    if (i == plan->parts.size()) {
      ConvPart part;
      bool made = false;
      if (i > 0) {  // the weights of the first part serve the others if oneDNN agrees
        try {
          made = builder.make(piece, &plan->parts[0].w.inner, part);
        } catch (const dnnl::error&) {
          made = false;
        }
      }
      if (!made && !builder.make(piece, nullptr, part)) return false;
      plan->parts.push_back(std::move(part));
    }
    plan->pieces.push_back({static_cast<int>(i), x_offset, y_offset});
    return true;
  };
  const Cut cut = choose_cut(builder.kind, s);
  const int64_t x_image = s.spatial(s.in) * s.in_channels, y_image = s.out_spatial() * s.out_channels;
  try {
    for (int64_t i = 0; i < cut.batches; ++i) {
      const int64_t n0 = s.batch * i / cut.batches, n1 = s.batch * (i + 1) / cut.batches;
      for (int64_t r = 0; r < cut.rows; ++r) {
        ConvShape piece = s;
        piece.batch = n1 - n0;
        int64_t x_offset = n0 * x_image, y_offset = n0 * y_image;
        if (cut.rows > 1) {
          const int64_t o0 = s.out(0) * r / cut.rows, o1 = s.out(0) * (r + 1) / cut.rows;
          int64_t first_in = 0;
          piece = row_piece(s, o0, o1, &first_in);
          x_offset += first_in * (x_image / s.in[0]);
          y_offset += o0 * (y_image / s.out(0));
        }
        if (!add(piece, x_offset, y_offset)) return std::make_shared<ConvPlan>();
      }
    }
  } catch (const dnnl::error&) {
    return std::make_shared<ConvPlan>();
  }
  plan->usable = true;
  return plan;
}

}  // namespace

bool conv_is_matmul(const ConvShape& s) {
  if (s.groups != 1) return false;
  for (int d = 0; d < s.dims; ++d) {
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.pad_before[d] != 0 || s.pad_after[d] != 0) return false;
  }
  return true;
}

std::shared_ptr<const ConvPlan> conv_plan(ConvKind kind, const ConvShape& s, ConvLayout layout, bool flipped,
                                          dnnl::memory::data_type type) {
  PlanKey key;
  key.add(static_cast<int64_t>(kind) | static_cast<int64_t>(layout) << 4 | int64_t{flipped} << 8 |
          static_cast<int64_t>(s.dims) << 12 | static_cast<int64_t>(type) << 16);
  for (int64_t word : {s.batch, s.in_channels, s.out_channels, s.groups}) key.add(word);
  for (const ConvShape::Dims* dims : {&s.in, &s.kernel, &s.stride, &s.dilation, &s.pad_before, &s.pad_after}) {
    for (int d = 0; d < s.dims; ++d) key.add((*dims)[static_cast<size_t>(d)]);
  }
  return plan_cache().get<ConvPlan>(key, [&] { return build(Builder{kind, layout, flipped, type}, s); });
}

}  // namespace runnel::cpu
