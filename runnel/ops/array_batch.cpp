// Blocks of spatial dimensions moved into the batch, and back.
#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/partition.h"

namespace runnel {
namespace {

// Blocks and what is padded or cropped on both sides, for every spatial dimension.
struct Blocks {
  Dims size, before, after;

  int count() const { return static_cast<int>(size.size()); }
  int64_t product() const { return checked_product(size); }
};

// When both are known. `what` names the input with the pairs.
std::optional<Blocks> known_blocks(const InferContext& c, const char* what) {
  const Tensor *size = c.constant(1), *pairs = c.constant(2);
  if (!size || !pairs) return std::nullopt;
  Blocks blocks{int_values(*size), {}, {}};
  const Dims flat = int_values(*pairs);
  for (size_t i = 0; i < blocks.size.size(); ++i) {
    if (blocks.size[i] < 1) throw invalid_argument("block_shape[{}] must be positive, got {}", i, blocks.size[i]);
    blocks.before.push_back(flat[2 * i]);
    blocks.after.push_back(flat[2 * i + 1]);
    if (flat[2 * i] < 0 || flat[2 * i + 1] < 0) {
      throw invalid_argument("{}[{}] must not be negative, got [{}, {}]", what, i, flat[2 * i], flat[2 * i + 1]);
    }
  }
  return blocks;
}

// Checks what is known of block_shape [m] and its pairs [m, 2]; m, or -1 where it is not known.
int64_t block_rank(InferContext& c, const char* what) {
  c.require_rank(1, 1);
  c.require_rank(2, 2);
  const PartialShape &size = c.input(1), &pairs = c.input(2);
  const int64_t m = size.has_rank() && size[0] >= 0 ? size[0] : pairs.has_rank() ? pairs[0] : kUnknownDim;
  if (pairs.has_rank() && ((pairs[1] >= 0 && pairs[1] != 2) || (m >= 0 && pairs[0] >= 0 && pairs[0] != m))) {
    throw invalid_argument("{} must be [{}, 2] for a block_shape of {} sizes, got {}", what, m, m, pairs.str());
  }
  if (m >= 0) c.require_rank_at_least(0, static_cast<int>(m) + 1);
  return m;
}

// Copies between the whole [batch, blocks of every dimension..., rest] (padded) and the small images; `to_batch` tells
// the way. Element (b, block * i + k - before) of the whole is element (k * batch + b, i) of the small ones.
void move_blocks(const Tensor& whole, const Tensor& small, const Blocks& blocks, const Tensor& from, const Tensor& to) {
  const bool to_batch = &to == &small;
  const Dims &w = whole.shape().dims(), &s = small.shape().dims();
  const int m = blocks.count();
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(m) + 1; d < w.size(); ++d) inner *= w[d];
  int64_t places = 1;
  for (int d = 1; d <= m; ++d) places *= s[static_cast<size_t>(d)];
  const int64_t batch = w[0];
  cpu::with_element(whole.dtype(), [&]<class E>() {
    const E* x = from.data<E>();
    E* y = to.mutable_data<E>();
    for (int64_t row = 0; row < s[0]; ++row) {
      const int64_t b = row % batch;
      for (int64_t p = 0; p < places; ++p) {
        int64_t rest = p, block = row / batch, at = 0, stride = 1;
        bool inside = true;
        for (int d = m; d >= 1; --d) {
          const auto k = static_cast<size_t>(d);
          const int64_t n = blocks.size[k - 1];
          const int64_t i = rest % s[k] * n + block % n - blocks.before[k - 1];
          rest /= s[k];
          block /= n;
          inside = inside && i >= 0 && i < w[k];
          at += i * stride;
          stride *= w[k];
        }
        const int64_t here = (row * places + p) * inner, there = (b * stride + at) * inner;
        if (to_batch && inside) cpu::copy_run(x + there, y + here, inner);
        if (to_batch && !inside) std::fill(y + here, y + here + inner, E{});
        if (!to_batch && inside) cpu::copy_run(x + here, y + there, inner);
      }
    }
  });
}

Blocks blocks_of(KernelContext& c) {
  Blocks blocks{c.ints(1), {}, {}};
  const Dims flat = c.ints(2);
  for (size_t i = 0; i < blocks.size.size(); ++i) {
    blocks.before.push_back(flat[2 * i]);
    blocks.after.push_back(flat[2 * i + 1]);
  }
  return blocks;
}

}  // namespace

void register_array_batch(Registry& r) {
  const Tensor pixels{{{{1.f}, {2.f}}, {{3.f}, {4.f}}}};
  const Tensor apart{{{{1.f}}}, {{{2.f}}}, {{{3.f}}}, {{{4.f}}}};
  const Tensor block{2, 2}, none{{0, 0}, {0, 0}};
  const Tensor vast{int64_t{1} << 32, int64_t{1} << 32};
  r.define("SpaceToBatchND")
      .type("T", data_types)
      .in("input", "T")
      .in_host("block_shape", "Tblock_shape")
      .in_host("paddings", "Tpaddings")
      .out("output", "T")
      .shape([](InferContext& c) {
        const int64_t m = block_rank(c, "paddings");
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(PartialShape::unknown());
        const auto blocks = known_blocks(c, "paddings");
        if (!blocks) return c.output(PartialShape::unknown_dims(x.rank()));
        Dims dims = x.dims();
        const int64_t places = blocks->product();
        if (dims[0] >= 0) dims[0] = checked_times(dims[0], places);
        for (size_t i = 0; i < static_cast<size_t>(m); ++i) {
          int64_t& size = dims[i + 1];
          if (size < 0) continue;
          size = checked_plus(checked_plus(size, blocks->before[i]), blocks->after[i]);
          if (size % blocks->size[i] != 0) {
            throw invalid_argument("padded size {} of dimension {} is no multiple of block {}", size, i + 1,
                                   blocks->size[i]);
          }
          size /= blocks->size[i];
        }
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c) { move_blocks(c.in(0), c.out(), blocks_of(c), c.in(0), c.out()); })
      .grad([](const GradCtx& g) {
        return Gradients{batch_to_space(g.dy(), g.x(1), g.x(2)), {}, {}};
      })
      .grad_reads({1, 2})
      .doc("Blocks of the padded spatial dimensions taken apart: each place of a block becomes an image of its own.")
      .sample({.in = {pixels, block, none}, .out = {apart}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}, Tensor{2}, Tensor{{1, 0}}}, .out = {Tensor{{0.f, 2.f}, {1.f, 3.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f, 3.f}}, Tensor{2}, Tensor{{0, 0}}}, .error = "no multiple of block 2"})
      .sample({.in = {pixels, block, Tensor{{0, 0}}}, .error = "paddings must be [2, 2]"})
      .sample({.in = {pixels, vast, none}, .error = "more than can be counted"});

  r.define("BatchToSpaceND")
      .type("T", data_types)
      .in("input", "T")
      .in_host("block_shape", "Tblock_shape")
      .in_host("crops", "Tcrops")
      .out("output", "T")
      .shape([](InferContext& c) {
        const int64_t m = block_rank(c, "crops");
        const PartialShape& x = c.input(0);
        if (!x.has_rank()) return c.output(PartialShape::unknown());
        const auto blocks = known_blocks(c, "crops");
        if (!blocks) return c.output(PartialShape::unknown_dims(x.rank()));
        Dims dims = x.dims();
        const int64_t places = blocks->product();
        if (dims[0] >= 0 && dims[0] % places != 0) {
          throw invalid_argument("a batch of {} is no multiple of the {} places of a block", dims[0], places);
        }
        if (dims[0] >= 0) dims[0] /= places;
        for (size_t i = 0; i < static_cast<size_t>(m); ++i) {
          int64_t& size = dims[i + 1];
          if (size < 0) continue;
          size = checked_times(size, blocks->size[i]) - blocks->before[i];
          if (size < blocks->after[i]) throw invalid_argument("crops[{}] leave nothing of dimension {}", i, i + 1);
          size -= blocks->after[i];
        }
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c) { move_blocks(c.out(), c.in(0), blocks_of(c), c.in(0), c.out()); })
      .grad([](const GradCtx& g) {
        return Gradients{space_to_batch(g.dy(), g.x(1), g.x(2)), {}, {}};
      })
      .grad_reads({1, 2})
      .doc("Images put together as blocks of one larger image, which is then cropped.")
      .sample({.in = {apart, block, none}, .out = {pixels}})
      .sample({.in = {Tensor{{0.f, 2.f}, {1.f, 3.f}}, Tensor{2}, Tensor{{1, 0}}}, .out = {Tensor{{1.f, 2.f, 3.f}}}})
      .sample({.in = {Tensor{{1.f}, {2.f}, {3.f}}, Tensor{2}, Tensor{{0, 0}}}, .error = "no multiple of the 2 places"})
      .sample({.in = {apart, block, Tensor{{2, 1}, {0, 0}}}, .error = "leave nothing"})
      .sample({.in = {apart, vast, none}, .error = "more than can be counted"});
}

Tensor space_to_batch(const Operand& input, const Operand& block_shape, const Operand& paddings) {
  static const Op op("SpaceToBatchND");
  return op({input, block_shape, paddings});
}
Tensor batch_to_space(const Operand& input, const Operand& block_shape, const Operand& crops) {
  static const Op op("BatchToSpaceND");
  return op({input, block_shape, crops});
}

}  // namespace runnel
