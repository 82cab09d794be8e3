#include "runnel/kernels/cpu/conv.h"

#include <algorithm>
#include <cstring>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/conv_outer.h"
#include "runnel/kernels/cpu/conv_plan.h"
#include "runnel/kernels/cpu/scratch.h"

// Which of oneDNN's ways runs a shape is a fixed rule, fitted offline on an AVX-512 machine (Ice Lake) and on AVX2
// (Zen 3, and Ice Lake held to AVX2); never timed at run time, so results do not depend on the day.
//
// - 1x1, stride 1: a matrix product (GEMM 130-146 GF against 81-87 of the 1x1 backward primitives on NHWC).
// - Forward: NHWC activations with weights as oneDNN likes them. Blocked activations plus reorders never won.
// - Backward data: with AVX-512, stride 1 and at least 16 input channels, as the forward convolution of dy with the
// taps
//   reversed (145-200 GF against 84-110). With one or two input channels (with AVX-512, up to four) the GEMM based
//   primitive, which spends no lanes on channels that are not there (4 ms against 10 on 28x28x1). Otherwise direct.
// - Backward weights: NHWC with AVX-512, but with up to four input channels and multiples of 32 output channels own
//   tiles (conv_outer.h: 1.4x as fast on 28x28x1->32, 1.4-1.9x with three channels). With AVX2,
//   blocked activations where the reorders are small beside the gain, images of at least 48x48 with more than 2
//   channels or at least 64 input channels (1.1-1.8x); else NHWC.

namespace runnel::cpu {
namespace {

bool is_matmul(const ConvShape& s) {
  if (s.groups != 1) return false;
  for (int d = 0; d < s.dims; ++d) {
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.pad_before[d] != 0 || s.pad_after[d] != 0) return false;
  }
  return true;
}

bool runs_flipped(const ConvShape& s) {
  if (!dnnl_setup() || s.groups != 1 || s.in_channels < 16) return false;
  for (int d = 0; d < s.dims; ++d) {
    if (s.stride[d] != 1 || s.pad_before[d] >= s.extent(d) || s.pad_after[d] >= s.extent(d)) return false;
  }
  return true;
}

ConvLayout data_layout(const ConvShape& s) {
  return s.groups == 1 && s.in_channels <= (dnnl_setup() ? 4 : 2) ? ConvLayout::plain : ConvLayout::nhwc;
}

ConvLayout weights_layout(const ConvShape& s) {
  if (conv_outer_runs(s)) return ConvLayout::outer;
  if (dnnl_setup() || s.groups != 1) return ConvLayout::nhwc;
  const bool large = s.out_spatial() >= 48 * 48 && s.in_channels > 2;
  return large || s.in_channels >= 64 ? ConvLayout::any : ConvLayout::nhwc;
}

// Runs the reorder of `from` into scratch memory if the primitive wants another layout than the user's.
const float* reorder_in(const Reordered& r, const float* user, ScratchFrame& frame) {
  if (r.same) return user;
  void* inner = frame.bytes(r.inner.get_size());
  run_reorder(r.forth, r.forth_scratch, r.user, user, r.inner, inner);
  return static_cast<const float*>(inner);
}

// Where the weights of every part stand among those reordered for all parts, in floats; parts of one layout share.
std::vector<int64_t> weight_offsets(const ConvPlan& plan, int64_t& total) {
  std::vector<int64_t> offsets;
  total = 0;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    size_t same = 0;
    while (same < i && plan.parts[same].w.inner != plan.parts[i].w.inner) ++same;
    offsets.push_back(same < i ? offsets[same] : total);
    const auto floats = static_cast<int64_t>(plan.parts[i].w.inner.get_size() / sizeof(float));
    if (same == i) total += (floats + 15) / 16 * 16;
  }
  return offsets;
}

void reorder_weights(const ConvPlan& plan, const std::vector<int64_t>& offsets, const float* w, float* inner) {
  int64_t filled = -1;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    const Reordered& r = plan.parts[i].w;
    if (r.same || offsets[i] <= filled) continue;
    filled = offsets[i];
    run_reorder(r.forth, r.forth_scratch, r.user, w, r.inner, inner + offsets[i]);
  }
}

// x -> y for the forward primitive, y -> x for the backward one. `w` are the user's weights (null where no part reads
// them), `inner` those of the plan. The epilogue runs on each piece while it is in the cache; it is no part of oneDNN's
// primitive, which may add the bias before the sum is complete.
void run_inner(const ConvPlan& plan, bool backward, const float* from, const float* w, const float* inner,
               const std::vector<int64_t>& offsets, float* to, const Epilogue& epilogue) {
  parallel_for(static_cast<int64_t>(plan.pieces.size()), 1, [&](int64_t i, int64_t) {
    const ConvPiece& piece = plan.pieces[static_cast<size_t>(i)];
    const ConvPart& part = plan.parts[static_cast<size_t>(piece.part)];
    const Reordered& in = backward ? part.y : part.x;
    const Reordered& out = backward ? part.x : part.y;
    const int64_t in_offset = backward ? piece.y_offset : piece.x_offset;
    const int64_t out_offset = backward ? piece.x_offset : piece.y_offset;
    ScratchFrame piece_frame;
    const float* src = reorder_in(in, from + in_offset, piece_frame);
    void* dst = out.same ? to + out_offset : piece_frame.bytes(out.inner.get_size());
    const int in_arg = backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC;
    const int out_arg = backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST;
    const float* weights = part.w.same ? w : inner + offsets[static_cast<size_t>(piece.part)];
    run_primitive(part.primitive, part.scratchpad,
                  {{in_arg, &in.inner, src}, {DNNL_ARG_WEIGHTS, &part.w.inner, weights}, {out_arg, &out.inner, dst}});
    if (!out.same) run_reorder(out.back, out.back_scratch, out.inner, dst, out.user, to + out_offset);
    if (epilogue.empty()) return;
    const int64_t n = part.shape.out_channels;
    finish_rows(epilogue, part.shape.out_size() / n, 0, n, to + out_offset, n);
  });
}

void run_activations(const ConvPlan& plan, bool backward, const float* from, const float* w, float* to,
                     const Epilogue& epilogue = {}) {
  ScratchFrame frame;
  int64_t total = 0;
  const std::vector<int64_t> offsets = weight_offsets(plan, total);
  float* inner = frame.get<float>(total);
  reorder_weights(plan, offsets, w, inner);
  run_inner(plan, backward, from, w, inner, offsets, to, epilogue);
}

// dw = the sum of `pieces` gradients of `size` floats in the layout of ConvPart::lanes16.
void sum_lanes(const ConvShape& s, const float* partial, int64_t pieces, int64_t size, float* dw) {
  constexpr int64_t kSide = 16, kBlock = kSide * kSide;
  const int64_t taps = s.taps(), in_blocks = s.in_channels / kSide, row = s.out_channels;
  parallel_for(size / kBlock, 8192 / kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t tap = b % taps, in = b / taps % in_blocks, out = b / taps / in_blocks;
      const float* from = partial + b * kBlock;
      float* to = dw + (tap * s.in_channels + in * kSide) * row + out * kSide;
      for (int64_t i = 0; i < kSide; ++i) {
        float v[kSide];
        std::memcpy(v, from + i * kSide, sizeof(v));
        for (int64_t p = 1; p < pieces; ++p) {
          const float* more = from + p * size + i * kSide;
          for (int64_t j = 0; j < kSide; ++j) v[j] += more[j];
        }
        std::memcpy(to + i * row, v, sizeof(v));
      }
    }
  });
}

void finish(const ConvShape& s, float* y, const Epilogue& epilogue) {
  if (epilogue.empty()) return;
  const int64_t n = s.out_channels;
  parallel_for(s.out_size() / n, std::max<int64_t>(1, 16384 / n),
               [&](int64_t begin, int64_t end) { finish_rows(epilogue, end - begin, 0, n, y + begin * n, n); });
}

std::shared_ptr<const ConvPlan> forward_plan(const ConvShape& s) {
  return conv_plan(ConvKind::forward, s, ConvLayout::nhwc, false);
}

// dy convolved with the taps in reverse gives dx.
ConvShape flipped_shape(const ConvShape& s) {
  ConvShape f = s;
  std::swap(f.in_channels, f.out_channels);
  for (int d = 0; d < s.dims; ++d) {
    f.in[d] = s.out(d);
    f.pad_before[d] = s.extent(d) - 1 - s.pad_before[d];
    f.pad_after[d] = s.extent(d) - 1 - s.pad_after[d];
  }
  return f;
}

}  // namespace

void conv_forward(const ConvShape& s, const float* x, const float* w, float* y, const Epilogue& epilogue) {
  if (s.out_size() == 0) return;
  if (s.in_size() == 0 || s.weight_size() == 0) {
    std::fill(y, y + s.out_size(), 0.0f);
    return finish(s, y, epilogue);
  }
  if (is_matmul(s)) {
    return gemm_f32(false, false, s.batch * s.out_spatial(), s.out_channels, s.in_channels, 1.0f, x, s.in_channels, w,
                    s.out_channels, 0.0f, y, s.out_channels, epilogue);
  }
  const auto plan = forward_plan(s);
  if (plan->usable) return run_activations(*plan, false, x, w, y, epilogue);
  conv_forward_plain<float>(s, x, w, y);
  finish(s, y, epilogue);
}

int64_t conv_packed_size(const ConvShape& s) {
  if (s.out_size() == 0 || s.in_size() == 0 || s.weight_size() == 0 || is_matmul(s)) return 0;
  const auto plan = forward_plan(s);
  if (!plan->usable) return 0;
  for (const ConvPart& part : plan->parts) {
    if (part.w.same) return 0;
  }
  int64_t total = 0;
  weight_offsets(*plan, total);
  return total;
}

void conv_pack(const ConvShape& s, const float* w, float* packed) {
  const auto plan = forward_plan(s);
  int64_t total = 0;
  reorder_weights(*plan, weight_offsets(*plan, total), w, packed);
}

void conv_forward_packed(const ConvShape& s, const float* x, const float* packed, float* y, const Epilogue& epilogue) {
  const auto plan = forward_plan(s);
  int64_t total = 0;
  run_inner(*plan, false, x, nullptr, packed, weight_offsets(*plan, total), y, epilogue);
}

void conv_backward_data(const ConvShape& s, const float* dy, const float* w, float* dx) {
  if (s.in_size() == 0) return;
  if (s.out_size() == 0 || s.weight_size() == 0) {
    std::fill(dx, dx + s.in_size(), 0.0f);
    return;
  }
  if (is_matmul(s)) {
    return gemm_f32(false, true, s.batch * s.out_spatial(), s.in_channels, s.out_channels, 1.0f, dy, s.out_channels, w,
                    s.out_channels, 0.0f, dx, s.in_channels);
  }
  if (runs_flipped(s)) {
    const auto plan = conv_plan(ConvKind::forward, flipped_shape(s), ConvLayout::nhwc, true);
    if (plan->usable) {
      ScratchFrame frame;
      const int64_t taps = s.taps(), size = s.in_channels * s.out_channels;
      float* reversed = frame.get<float>(taps * size);
      for (int64_t t = 0; t < taps; ++t) {
        std::memcpy(reversed + t * size, w + (taps - 1 - t) * size, static_cast<size_t>(size) * sizeof(float));
      }
      return run_activations(*plan, false, dy, reversed, dx);
    }
  }
  const auto plan = conv_plan(ConvKind::backward_data, s, data_layout(s), false);
  if (plan->usable) return run_activations(*plan, true, dy, w, dx);
  conv_backward_data_plain<float>(s, dy, w, dx);
}

void conv_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw) {
  const int64_t size = s.weight_size();
  if (size == 0) return;
  if (s.in_size() == 0 || s.out_size() == 0) {
    std::fill(dw, dw + size, 0.0f);
    return;
  }
  if (is_matmul(s)) {
    return gemm_f32(true, false, s.in_channels, s.out_channels, s.batch * s.out_spatial(), 1.0f, x, s.in_channels, dy,
                    s.out_channels, 0.0f, dw, s.out_channels);
  }
  const ConvLayout layout = weights_layout(s);
  const auto plan = conv_plan(ConvKind::backward_weights, s, layout, false);
  if (!plan->usable) return conv_backward_weights_plain<float>(s, x, dy, dw);

  // Every piece fills its own gradient; they are added in order, in oneDNN's layout if all pieces share it.
  const auto pieces = static_cast<int64_t>(plan->pieces.size());
  const Reordered& first = plan->parts[0].w;
  bool shared = true;
  for (const ConvPart& part : plan->parts) shared = shared && part.w.inner == first.inner;
  const int64_t partial_size = shared ? static_cast<int64_t>(first.inner.get_size() / sizeof(float)) : size;
  ScratchFrame frame;
  const bool in_place = first.same && shared && pieces == 1;
  float* partial = in_place ? dw : frame.get<float>(pieces * partial_size);
  parallel_for(pieces, 1, [&](int64_t i, int64_t) {
    const ConvPiece& piece = plan->pieces[static_cast<size_t>(i)];
    const ConvPart& part = plan->parts[static_cast<size_t>(piece.part)];
    if (layout == ConvLayout::outer) {
      return conv_outer_weights(part.shape, x + piece.x_offset, dy + piece.y_offset, partial + i * partial_size);
    }
    ScratchFrame piece_frame;
    const float* px = reorder_in(part.x, x + piece.x_offset, piece_frame);
    const float* py = reorder_in(part.y, dy + piece.y_offset, piece_frame);
    float* own = partial + i * partial_size;
    void* pw = shared || part.w.same ? own : piece_frame.bytes(part.w.inner.get_size());
    run_primitive(part.primitive, part.scratchpad,
                  {{DNNL_ARG_SRC, &part.x.inner, px},
                   {DNNL_ARG_DIFF_DST, &part.y.inner, py},
                   {DNNL_ARG_DIFF_WEIGHTS, &part.w.inner, pw}});
    if (pw != own) run_reorder(part.w.back, part.w.back_scratch, part.w.inner, pw, part.w.user, own);
  });
  if (in_place) return;
  if (shared && plan->parts[0].lanes16) return sum_lanes(s, partial, pieces, partial_size, dw);
  const bool direct = !shared || first.same;
  float* sum = direct ? dw : partial;
  parallel_for(partial_size, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      float v = partial[j];
      for (int64_t i = 1; i < pieces; ++i) v += partial[i * partial_size + j];
      sum[j] = v;
    }
  });
  if (!direct) run_reorder(first.back, first.back_scratch, first.inner, partial, first.user, dw);
}

}  // namespace runnel::cpu
