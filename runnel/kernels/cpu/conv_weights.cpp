#include <algorithm>
#include <cstring>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/conv_outer.h"
#include "runnel/kernels/cpu/conv_pixels.h"
#include "runnel/kernels/cpu/conv_plan.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/gemm_bf16.h"

// The gradient of the weights. Which way runs is a fixed rule, as in conv.cpp:
// NHWC with AVX-512, but with up to four input channels and multiples of 32 output channels own
// tiles (conv_outer.h: 1.4x as fast on 28x28x1->32, 1.4-1.9x with three channels). With AVX2,
// blocked activations where the reorders are small beside the gain, images of at least 48x48 with more than 2
// channels or at least 64 input channels (1.1-1.8x); else NHWC.

namespace runnel::cpu {
namespace {

ConvLayout weights_layout(const ConvShape& s, bool bf16) {
  if (!bf16 && conv_outer_runs(s)) return ConvLayout::outer;
  if (dnnl_setup() || s.groups != 1) return ConvLayout::nhwc;
  const bool large = s.out_spatial() >= 48 * 48 && s.in_channels > 2;
  return large || s.in_channels >= 64 ? ConvLayout::any : ConvLayout::nhwc;
}

// Is every tap of the kernel over the input for some output? To the others oneDNN writes nothing.
bool all_taps_meet_input(const ConvShape& s) {
  for (int d = 0; d < s.dims; ++d) {
    for (int64_t tap = 0; tap < s.kernel[d]; ++tap) {
      const int64_t first = tap * s.dilation[d] - s.pad_before[d];
      const int64_t skipped = first >= 0 ? 0 : (-first + s.stride[d] - 1) / s.stride[d];  // outputs before the input
      if (skipped >= s.out(d) || first + skipped * s.stride[d] >= s.in[d]) return false;
    }
  }
  return true;
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

// False where oneDNN has nothing fast.
template <class T>
bool run_backward_weights(const ConvShape& s, const T* x, const T* dy, float* dw) {
  const int64_t size = s.weight_size();
  const ConvLayout layout = weights_layout(s, std::is_same_v<T, BFloat16>);
  const auto plan = conv_plan(ConvKind::backward_weights, s, layout, false, conv_type<T>);
  if (!plan->usable) return false;

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
    if constexpr (std::is_same_v<T, float>) {
      if (layout == ConvLayout::outer) {
        return conv_outer_weights(part.shape, x + piece.x_offset, dy + piece.y_offset, partial + i * partial_size);
      }
    }
    ScratchFrame piece_frame;
    const T* px = laid_out(part.x, x + piece.x_offset, piece_frame);
    const T* py = laid_out(part.y, dy + piece.y_offset, piece_frame);
    float* own = partial + i * partial_size;
    void* pw = shared || part.w.same ? own : piece_frame.bytes(part.w.inner.get_size());
    if (!all_taps_meet_input(part.shape)) std::memset(pw, 0, part.w.inner.get_size());
    run_primitive(part.primitive, part.scratchpad,
                  {{DNNL_ARG_SRC, &part.x.inner, px},
                   {DNNL_ARG_DIFF_DST, &part.y.inner, py},
                   {DNNL_ARG_DIFF_WEIGHTS, &part.w.inner, pw}});
    if (pw != own) run_reorder(part.w.back, part.w.back_scratch, part.w.inner, pw, part.w.user, own);
  });
  if (in_place) return true;
  if (shared && plan->parts[0].lanes16) {
    sum_lanes(s, partial, pieces, partial_size, dw);
    return true;
  }
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
  return true;
}

}  // namespace

void conv_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw) {
  const int64_t size = s.weight_size();
  if (size == 0) return;
  if (s.in_size() == 0 || s.out_size() == 0) {
    std::fill(dw, dw + size, 0.0f);
    return;
  }
  if (conv_is_matmul(s)) {
    return gemm_f32(true, false, s.in_channels, s.out_channels, s.batch * s.out_spatial(), 1.0f, x, s.in_channels, dy,
                    s.out_channels, 0.0f, dw, s.out_channels);
  }
  if (conv_skips_pixels(s)) {
    return with_met_pixels(
        s, x, [&](const ConvShape& met, const float* pixels) { conv_backward_weights(met, pixels, dy, dw); });
  }
  if (run_backward_weights(s, x, dy, dw)) return;
  conv_backward_weights_plain<float>(s, x, dy, dw);
}

bool conv_backward_weights_bf16(const ConvShape& s, const BFloat16* x, const BFloat16* dy, BFloat16* dw) {
  if (!multiplies_bf16()) return false;
  if (conv_is_matmul(s)) {
    gemm_batched_bf16(1, true, false, s.in_channels, s.out_channels, s.batch * s.out_spatial(), x, s.in_channels, 0, dy,
                      s.out_channels, 0, dw, s.out_channels, 0);
    return true;
  }
  if (conv_skips_pixels(s)) {
    return with_met_pixels(s, x, [&](const ConvShape& met, const BFloat16* pixels) {
      return conv_backward_weights_bf16(met, pixels, dy, dw);
    });
  }
  ScratchFrame frame;
  auto* sum = frame.get<float>(s.weight_size());
  if (!run_backward_weights(s, x, dy, sum)) return false;
  parallel_for(s.weight_size(), 1 << 15,
               [&](int64_t begin, int64_t end) { convert_block(sum + begin, dw + begin, end - begin); });
  return true;
}

}  // namespace runnel::cpu
