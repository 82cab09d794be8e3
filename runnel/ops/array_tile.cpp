// Repetition: Tile and repeat.
#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"

namespace runnel {

void register_array_tile(Registry& r) {
  r.define("Tile")
      .in("input", all_types)
      .in_host("multiples", "Tmultiples")
      .out("output")
      .moves()
      .shape([](InferContext& c) {
        c.require_rank(1, 1);
        const PartialShape& x = c.input(0);
        const bool all_known = c.constant(1) != nullptr;  // else -1 is one that is not known
        const auto times = all_known ? c.constant_ints(1) : c.partial_ints(1);
        if (!x.has_rank()) return c.output(times ? PartialShape::unknown_dims(static_cast<int>(times->size())) : x);
        if (!times) return c.output(PartialShape::unknown_dims(x.rank()));
        if (static_cast<int>(times->size()) != x.rank()) {
          throw invalid_argument("{} multiples for a tensor of rank {}", times->size(), x.rank());
        }
        Dims dims;
        for (int d = 0; d < x.rank(); ++d) {
          const int64_t m = (*times)[static_cast<size_t>(d)];
          if (m < 0 && (all_known || m != kUnknownDim)) {
            throw invalid_argument("multiples[{}] is negative: {}", d, m);
          }
          int64_t size = kUnknownDim;
          if (m == 0 || x[d] == 0) {
            size = 0;
          } else if (x[d] > 0 && m > 0) {
            size = checked_times(x[d], m);
          }
          dims.push_back(size);
        }
        c.output(PartialShape(dims));
      })
      .cpu([](KernelContext& c) {
        // Every dimension is two of the output: which copy, and where in it.
        const Dims times = c.ints(1);
        const Dims& x = c.in(0).shape().dims();
        const Dims dense = cpu::dense_strides(x);
        Dims dims, from;
        for (size_t d = 0; d < x.size(); ++d) {
          dims.push_back(times[d]);
          from.push_back(0);
          dims.push_back(x[d]);
          from.push_back(dense[d]);
        }
        cpu::copy_strided(c.out().dtype(), dims, c.in(0).raw(), from, c.out<char>(), cpu::dense_strides(dims));
      })
      .grad([](const GradCtx& g) {
        const PartialShape x = g.x(0).partial_shape();
        const auto times = static_ints(g.x(1));
        const auto sizes_of = [&] { return reshape(stack({g.x(1), shape(g.x(0), g.x(1).dtype())}, 1), {-1}); };
        if (!x.has_rank()) {
          const Tensor sizes = sizes_of();
          return Gradients{reduce_sum(reshape(g.dy(), sizes), Axes(range(0, size(sizes), 2))), {}};
        }
        Dims copies;
        for (int d = 0; d < x.rank(); ++d) copies.push_back(2 * d);
        Dims split;
        if (times && x.is_static()) {
          for (int d = 0; d < x.rank(); ++d) {
            split.push_back((*times)[static_cast<size_t>(d)]);
            split.push_back(x[d]);
          }
          return Gradients{reduce_sum(reshape(g.dy(), split), Axes(int_vector(copies))), {}};
        }
        return Gradients{reduce_sum(reshape(g.dy(), sizes_of()), Axes(int_vector(copies))), {}};
      })
      .doc("The input repeated multiples[d] times along every dimension d.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{2}}, .out = {Tensor{1.f, 2.f, 1.f, 2.f}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{2, 2}}, .out = {Tensor{{1.f, 2.f, 1.f, 2.f}, {1.f, 2.f, 1.f, 2.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{-1}}, .error = "multiples[0] is negative"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{INT64_MAX}}, .error = "more than can be counted"})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1, 1}}, .error = "2 multiples for a tensor of rank 1"});
}

Tensor tile(const Operand& input, const ShapeArg& multiples) {
  static const Op op("Tile");
  return op({input, multiples.tensor()});
}

}  // namespace runnel
