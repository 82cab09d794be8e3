// Patches cut out of images at regular distances.
#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn_window.h"

namespace runnel {
namespace {

struct PatchAttrs {
  std::vector<int64_t> ksizes, strides, rates;
  std::string padding;
  static constexpr auto fields() {
    constexpr AttrRule sizes{.required = true, .minimum = 4};
    return field_list(field("ksizes", &PatchAttrs::ksizes, sizes), field("strides", &PatchAttrs::strides, sizes),
                      field("rates", &PatchAttrs::rates, sizes),
                      field("padding", &PatchAttrs::padding, {.required = true, .texts = "SAME|VALID"}));
  }
};

void check_list(const char* name, const std::vector<int64_t>& list) {
  if (list[0] != 1 || list[3] != 1) throw invalid_argument("{} must be [1, rows, columns, 1]", name);
  if (list[1] < 1 || list[2] < 1) throw invalid_argument("{} must be positive, got {}, {}", name, list[1], list[2]);
}

// A rate spreads the pixels of a patch: what it spans counts for the padding.
Windows patch_windows(const PatchAttrs& a, const Dims& in) {
  check_list("ksizes", a.ksizes);
  check_list("strides", a.strides);
  check_list("rates", a.rates);
  const std::vector<int64_t> strides(a.strides.begin(), a.strides.begin() + 4),
      rates(a.rates.begin(), a.rates.begin() + 4);
  return place_windows({2, strides, rates, a.padding}, in, {a.ksizes[1], a.ksizes[2]});
}

// patches[b, y, x, (ky, kx, channel)] and images, `visit(image pixel, patch position)` for each pixel of a patch that
// lies inside the image. Positions count pixels.
template <class Visit>
void for_each_pixel(const Windows& w, int64_t batch, Visit visit) {
  const Window &down = w[0], &across = w[1];
  for (int64_t y = 0; y < down.out; ++y) {
    for (int64_t x = 0; x < across.out; ++x) {
      for (int64_t ky = 0; ky < down.size; ++ky) {
        const int64_t row = y * down.stride - down.before + ky * down.dilation;
        if (row < 0 || row >= down.in) continue;
        for (int64_t kx = 0; kx < across.size; ++kx) {
          const int64_t column = x * across.stride - across.before + kx * across.dilation;
          if (column < 0 || column >= across.in) continue;
          visit((batch * down.in + row) * across.in + column,
                (((batch * down.out + y) * across.out + x) * down.size + ky) * across.size + kx);
        }
      }
    }
  }
}

void cut_patches(KernelContext& c, const PatchAttrs& a) {
  const Shape& s = c.in(0).shape();
  const Windows w = patch_windows(a, {s[1], s[2]});
  const int64_t channels = s[3];
  cpu::with_element(c.in(0).dtype(), [&]<class E>() {
    const E* from = c.in(0).data<E>();
    E* to = c.out().mutable_data<E>();
    std::fill(to, to + c.out().num_elements(), E{});
    parallel_for(s[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for_each_pixel(w, b, [&](int64_t pixel, int64_t at) {
          cpu::copy_run(from + pixel * channels, to + at * channels, channels);
        });
      }
    });
  });
}

}  // namespace

void register_image_patches(Registry& r) {
  const Tensor image = Tensor::of<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{1, 3, 3, 1});
  r.define<PatchAttrs>("ExtractImagePatches")
      .type("T", plain_types)
      .in("images", "T")
      .out("patches", "T")
      .shape([](InferContext& c, const PatchAttrs& a) {
        c.require_rank(0, 4);
        const PartialShape& x = c.input(0);
        const bool ranked = x.has_rank();
        const Windows w = patch_windows(a, {ranked ? x[1] : kUnknownDim, ranked ? x[2] : kUnknownDim});
        const int64_t pixels = checked_times(a.ksizes[1], a.ksizes[2]);
        const int64_t depth = ranked && x[3] >= 0 ? checked_times(x[3], pixels) : kUnknownDim;
        c.output(PartialShape{ranked ? x[0] : kUnknownDim, w[0].out, w[1].out, depth});
      })
      .cpu([](KernelContext& c, const PatchAttrs& a) { cut_patches(c, a); })
      .grad([](const GradCtx& g, const PatchAttrs& a) {
        // Patches of the numbers of the pixels (0: outside) say what each element of the gradient belongs to.
        static const Op<PatchAttrs> op("ExtractImagePatches");
        const Tensor sizes = shape(g.x());
        const Tensor pixels = sizes[1] * sizes[2];
        const Tensor numbers = reshape(range(ones_like(pixels), pixels + 1, ones_like(pixels)),
                                       stack({Tensor(1), sizes[1], sizes[2], Tensor(1)}));
        const Tensor which = reshape(op({numbers}, a), {-1, 1});
        // [batch, places, channels] -> [places, batch, channels], summed by pixel.
        const Tensor split = reshape(g.dy(), stack({sizes[0], shape(which)[0], sizes[3]}));
        const Tensor sums = scatter_nd(which, transpose(split, {1, 0, 2}), stack({pixels + 1, sizes[0], sizes[3]}));
        return reshape(transpose(sums(slice(1, none)), {1, 0, 2}), sizes);
      })
      .doc("Patches of images at regular distances, each laid out as channels of one pixel.")
      .sample({.in = {image},
               .out = {Tensor{
                   {{{1.f, 2.f, 4.f, 5.f}, {2.f, 3.f, 5.f, 6.f}}, {{4.f, 5.f, 7.f, 8.f}, {5.f, 6.f, 8.f, 9.f}}}}}},
              {.ksizes = {1, 2, 2, 1}, .strides = {1, 1, 1, 1}, .rates = {1, 1, 1, 1}, .padding = "VALID"})
      .sample({.in = {image}, .out = {Tensor{{{{1.f, 3.f, 7.f, 9.f}}}}}},
              {.ksizes = {1, 2, 2, 1}, .strides = {1, 1, 1, 1}, .rates = {1, 2, 2, 1}, .padding = "VALID"})
      .sample({.in = {image},
               .out = {Tensor{
                   {{{1.f, 2.f, 4.f, 5.f}, {3.f, 0.f, 6.f, 0.f}}, {{7.f, 8.f, 0.f, 0.f}, {9.f, 0.f, 0.f, 0.f}}}}}},
              {.ksizes = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}, .rates = {1, 1, 1, 1}, .padding = "SAME"})
      .sample({.in = {image}, .error = "more than can be counted"},
              {.ksizes = {1, int64_t{1} << 32, int64_t{1} << 32, 1},
               .strides = {1, 1, 1, 1},
               .rates = {1, 1, 1, 1},
               .padding = "SAME"})
      .sample({.in = {image}, .error = "more than can be counted"},
              {.ksizes = {1, 3, 3, 1}, .strides = {1, 1, 1, 1}, .rates = {1, INT64_MAX, 1, 1}, .padding = "SAME"})
      .sample({.in = {image}, .error = "strides must be positive"},
              {.ksizes = {1, 2, 2, 1}, .strides = {1, 0, 2, 1}, .rates = {1, 1, 1, 1}, .padding = "SAME"});
}

namespace image {

Tensor extract_patches(const Operand& images, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                       const std::vector<int64_t>& rates, const std::string& padding) {
  static const Op<PatchAttrs> op("ExtractImagePatches");
  return op({images}, {.ksizes = sizes, .strides = strides, .rates = rates, .padding = padding});
}

}  // namespace image
}  // namespace runnel
