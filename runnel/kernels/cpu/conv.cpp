#include "runnel/kernels/cpu/conv.h"

#include <algorithm>
#include <cstring>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/conv_outer.h"
#include "runnel/kernels/cpu/conv_pixels.h"
#include "runnel/kernels/cpu/conv_plan.h"
#include "runnel/kernels/cpu/gemm_bf16.h"
#include "runnel/kernels/cpu/scratch.h"

// Which of oneDNN's ways runs a shape is a fixed rule, fitted offline on an AVX-512 machine (Ice Lake) and on AVX2
// (Zen 3, and Ice Lake held to AVX2); never timed at run time, so results do not depend on the day.
//
// - 1x1, stride 1: a matrix product (GEMM 130-146 GF against 81-87 of the 1x1 backward primitives on NHWC); other
//   strides: the same of the pixels that are met (conv_pixels.h).
// - Forward: NHWC activations with weights as oneDNN likes them. Blocked activations plus reorders never won.
// - Backward data: with AVX-512, stride 1 and at least 16 input channels, as the forward convolution of dy with the
// taps
//   reversed (145-200 GF against 84-110). With one or two input channels (with AVX-512, up to four) the GEMM based
//   primitive, which spends no lanes on channels that are not there (4 ms against 10 on 28x28x1). Otherwise direct.

namespace runnel::cpu {
namespace {

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

// Where the weights of every part stand among those reordered for all parts, in elements; parts of one layout share.
template <class T>
std::vector<int64_t> weight_offsets(const ConvPlan& plan, int64_t& total) {
  std::vector<int64_t> offsets;
  total = 0;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    size_t same = 0;
    while (same < i && plan.parts[same].w.inner != plan.parts[i].w.inner) ++same;
    offsets.push_back(same < i ? offsets[same] : total);
    const auto count = static_cast<int64_t>(plan.parts[i].w.inner.get_size() / sizeof(T));
    if (same == i) total += (count + 31) / 32 * 32;
  }
  return offsets;
}

template <class T>
void reorder_weights(const ConvPlan& plan, const std::vector<int64_t>& offsets, const T* w, T* inner) {
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
template <class T>
void run_inner(const ConvPlan& plan, bool backward, const T* from, const T* w, const T* inner,
               const std::vector<int64_t>& offsets, T* to, const Epilogue& epilogue) {
  parallel_for(static_cast<int64_t>(plan.pieces.size()), 1, [&](int64_t i, int64_t) {
    const ConvPiece& piece = plan.pieces[static_cast<size_t>(i)];
    const ConvPart& part = plan.parts[static_cast<size_t>(piece.part)];
    const Reordered& in = backward ? part.y : part.x;
    const Reordered& out = backward ? part.x : part.y;
    const int64_t in_offset = backward ? piece.y_offset : piece.x_offset;
    const int64_t out_offset = backward ? piece.x_offset : piece.y_offset;
    ScratchFrame piece_frame;
    const T* src = laid_out(in, from + in_offset, piece_frame);
    void* dst = out.same ? to + out_offset : piece_frame.bytes(out.inner.get_size());
    const int in_arg = backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC;
    const int out_arg = backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST;
    const T* weights = part.w.same ? w : inner + offsets[static_cast<size_t>(piece.part)];
    run_primitive(part.primitive, part.scratchpad,
                  {{in_arg, &in.inner, src}, {DNNL_ARG_WEIGHTS, &part.w.inner, weights}, {out_arg, &out.inner, dst}});
    if (!out.same) run_reorder(out.back, out.back_scratch, out.inner, dst, out.user, to + out_offset);
    if constexpr (std::is_same_v<T, float>) {
      if (epilogue.empty()) return;
      const int64_t n = part.shape.out_channels;
      finish_rows(epilogue, part.shape.out_size() / n, 0, n, to + out_offset, n);
    }
  });
}

template <class T>
void run_activations(const ConvPlan& plan, bool backward, const T* from, const T* w, T* to,
                     const Epilogue& epilogue = {}) {
  ScratchFrame frame;
  int64_t total = 0;
  const std::vector<int64_t> offsets = weight_offsets<T>(plan, total);
  T* inner = frame.get<T>(total);
  reorder_weights(plan, offsets, w, inner);
  run_inner(plan, backward, from, w, inner, offsets, to, epilogue);
}

void finish(const ConvShape& s, float* y, const Epilogue& epilogue) {
  if (epilogue.empty()) return;
  const int64_t n = s.out_channels;
  parallel_for(s.out_size() / n, std::max<int64_t>(1, 16384 / n),
               [&](int64_t begin, int64_t end) { finish_rows(epilogue, end - begin, 0, n, y + begin * n, n); });
}

std::shared_ptr<const ConvPlan> forward_plan(const ConvShape& s) {
  return conv_plan(ConvKind::forward, s, ConvLayout::nhwc, false, conv_type<float>);
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

// False where oneDNN has nothing fast.
template <class T>
bool run_backward_data(const ConvShape& s, const T* dy, const T* w, T* dx) {
  if (runs_flipped(s)) {
    const auto plan = conv_plan(ConvKind::forward, flipped_shape(s), ConvLayout::nhwc, true, conv_type<T>);
    if (plan->usable) {
      ScratchFrame frame;
      const int64_t taps = s.taps(), size = s.in_channels * s.out_channels;
      T* reversed = frame.get<T>(taps * size);
      for (int64_t t = 0; t < taps; ++t) {
        std::memcpy(reversed + t * size, w + (taps - 1 - t) * size, static_cast<size_t>(size) * sizeof(T));
      }
      run_activations(*plan, false, dy, reversed, dx);
      return true;
    }
  }
  const auto plan = conv_plan(ConvKind::backward_data, s, data_layout(s), false, conv_type<T>);
  if (plan->usable) run_activations(*plan, true, dy, w, dx);
  return plan->usable;
}

}  // namespace

void conv_forward(const ConvShape& s, const float* x, const float* w, float* y, const Epilogue& epilogue) {
  if (s.out_size() == 0) return;
  if (s.in_size() == 0 || s.weight_size() == 0) {
    std::fill(y, y + s.out_size(), 0.0f);
    return finish(s, y, epilogue);
  }
  if (conv_is_matmul(s)) {
    return gemm_f32(false, false, s.batch * s.out_spatial(), s.out_channels, s.in_channels, 1.0f, x, s.in_channels, w,
                    s.out_channels, 0.0f, y, s.out_channels, epilogue);
  }
  if (conv_skips_pixels(s)) {
    return with_met_pixels(
        s, x, [&](const ConvShape& met, const float* pixels) { conv_forward(met, pixels, w, y, epilogue); });
  }
  const auto plan = forward_plan(s);
  if (plan->usable) return run_activations(*plan, false, x, w, y, epilogue);
  conv_forward_plain<float>(s, x, w, y);
  finish(s, y, epilogue);
}

int64_t conv_packed_size(const ConvShape& s) {
  if (s.out_size() == 0 || s.in_size() == 0 || s.weight_size() == 0 || conv_is_matmul(s) || conv_skips_pixels(s))
    return 0;
  const auto plan = forward_plan(s);
  if (!plan->usable) return 0;
  for (const ConvPart& part : plan->parts) {
    if (part.w.same) return 0;
  }
  int64_t total = 0;
  weight_offsets<float>(*plan, total);
  return total;
}

void conv_pack(const ConvShape& s, const float* w, float* packed) {
  const auto plan = forward_plan(s);
  int64_t total = 0;
  reorder_weights(*plan, weight_offsets<float>(*plan, total), w, packed);
}

void conv_forward_packed(const ConvShape& s, const float* x, const float* packed, float* y, const Epilogue& epilogue) {
  const auto plan = forward_plan(s);
  int64_t total = 0;
  run_inner<float>(*plan, false, x, nullptr, packed, weight_offsets<float>(*plan, total), y, epilogue);
}

void conv_backward_data(const ConvShape& s, const float* dy, const float* w, float* dx) {
  if (s.in_size() == 0) return;
  if (s.out_size() == 0 || s.weight_size() == 0) {
    std::fill(dx, dx + s.in_size(), 0.0f);
    return;
  }
  if (conv_is_matmul(s)) {
    return gemm_f32(false, true, s.batch * s.out_spatial(), s.in_channels, s.out_channels, 1.0f, dy, s.out_channels, w,
                    s.out_channels, 0.0f, dx, s.in_channels);
  }
  if (conv_skips_pixels(s)) {
    fill_met_pixels(s, dx, [&](const ConvShape& met, float* pixels) {
      conv_backward_data(met, dy, w, pixels);
      return true;
    });
    return;
  }
  if (run_backward_data(s, dy, w, dx)) return;
  conv_backward_data_plain<float>(s, dy, w, dx);
}

bool conv_forward_bf16(const ConvShape& s, const BFloat16* x, const BFloat16* w, BFloat16* y) {
  if (!multiplies_bf16()) return false;
  if (conv_is_matmul(s)) {
    gemm_batched_bf16(1, false, false, s.batch * s.out_spatial(), s.out_channels, s.in_channels, x, s.in_channels, 0, w,
                      s.out_channels, 0, y, s.out_channels, 0);
    return true;
  }
  if (conv_skips_pixels(s)) {
    return with_met_pixels(
        s, x, [&](const ConvShape& met, const BFloat16* pixels) { return conv_forward_bf16(met, pixels, w, y); });
  }
  const auto plan = conv_plan(ConvKind::forward, s, ConvLayout::nhwc, false, conv_type<BFloat16>);
  if (plan->usable) run_activations(*plan, false, x, w, y);
  return plan->usable;
}

bool conv_backward_data_bf16(const ConvShape& s, const BFloat16* dy, const BFloat16* w, BFloat16* dx) {
  if (!multiplies_bf16() || data_layout(s) == ConvLayout::plain) return false;
  if (conv_is_matmul(s)) {
    gemm_batched_bf16(1, false, true, s.batch * s.out_spatial(), s.in_channels, s.out_channels, dy, s.out_channels, 0,
                      w, s.out_channels, 0, dx, s.in_channels, 0);
    return true;
  }
  if (conv_skips_pixels(s)) {
    return fill_met_pixels(
        s, dx, [&](const ConvShape& met, BFloat16* pixels) { return conv_backward_data_bf16(met, dy, w, pixels); });
  }
  return run_backward_data(s, dy, w, dx);
}

}  // namespace runnel::cpu
