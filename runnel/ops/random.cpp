// Stateful draws.
#include <algorithm>
#include <cmath>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/random.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/random_context.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"
#include "runnel/ops/random_kernels.h"

namespace runnel {
namespace {

struct DrawAttrs {
  int64_t seed = 0;
  int64_t seed2 = 0;
  DType dtype = DType::float32;
  static constexpr auto fields() {
    return field_list(field("seed", &DrawAttrs::seed), field("seed2", &DrawAttrs::seed2),
                      field("dtype", &DrawAttrs::dtype, {.required = true, .types = floating.mask}));
  }
};
struct SeedAttrs {
  int64_t seed = 0;
  int64_t seed2 = 0;
  static constexpr auto fields() {
    return field_list(field("seed", &SeedAttrs::seed), field("seed2", &SeedAttrs::seed2));
  }
};
struct MultinomialAttrs {
  int64_t seed = 0;
  int64_t seed2 = 0;
  DType output_dtype = DType::int64;
  static constexpr auto fields() {
    return field_list(field("seed", &MultinomialAttrs::seed), field("seed2", &MultinomialAttrs::seed2),
                      field("output_dtype", &MultinomialAttrs::output_dtype, {.types = index_types.mask}));
  }
};

// For a kernel that draws `outputs` numbers.
template <class A>
Philox reserved(const A& a, uint64_t blocks, int64_t outputs) {
  return RandomContext::current().reserve(blocks, outputs, {a.seed, a.seed2});
}

template <Distribution kind>
void draw(KernelContext& c, const DrawAttrs& a) {
  draw_into(kind, reserved(a, blocks_for(kind, c.out()), c.out().num_elements()), c.out());
}

}  // namespace

void register_random(Registry& r) {
  r.define<DrawAttrs>("RandomUniform")
      .type("T", index_types)
      .in_host("shape", "T")
      .out("output", "dtype")
      .shape(drawn_shape)
      .cpu([](KernelContext& c, const DrawAttrs& a) { draw<Distribution::uniform>(c, a); })
      .stateful()
      .doc("Uniform draws from [0, 1).")
      .sample({.in = {Tensor{2, 3}}});
  r.define<DrawAttrs>("RandomStandardNormal")
      .type("T", index_types)
      .in_host("shape", "T")
      .out("output", "dtype")
      .shape(drawn_shape)
      .cpu([](KernelContext& c, const DrawAttrs& a) { draw<Distribution::normal>(c, a); })
      .stateful()
      .doc("Draws from the normal distribution of mean 0 and standard deviation 1.")
      .sample({.in = {Tensor{2, 3}}});
  r.define<DrawAttrs>("TruncatedNormal")
      .type("T", index_types)
      .in_host("shape", "T")
      .out("output", "dtype")
      .shape(drawn_shape)
      .cpu([](KernelContext& c, const DrawAttrs& a) { draw<Distribution::truncated_normal>(c, a); })
      .stateful()
      .doc("Standard normal draws; those beyond two standard deviations are drawn again.")
      .sample({.in = {Tensor{2, 3}}});

  r.define<SeedAttrs>("RandomUniformInt")
      .type("Tout", index_types)
      .type("T", index_types)
      .in_host("shape", "T")
      .in("minval", "Tout")
      .in("maxval", "Tout")
      .out("output", "Tout")
      .shape(drawn_shape)
      .cpu([]<class T>(KernelContext& c, const SeedAttrs& a) {
        const uint64_t blocks = cpu::plain_blocks(c.out().num_elements(), sizeof(T));
        draw_ints<T>(reserved(a, blocks, c.out().num_elements()), c.in(1), c.in(2), c.out());
      })
      .stateful()
      .doc("Uniform integers from [minval, maxval).")
      .sample({.in = {Tensor{3}, Tensor(2), Tensor(3)}, .out = {Tensor{2, 2, 2}}})
      .sample({.in = {Tensor{3}, Tensor(3), Tensor(3)}, .error = "minval < maxval"});

  r.define<SeedAttrs>("RandomGamma")
      .type("T", Types<Half, float, double>{})
      .type("S", index_types)
      .in_host("shape", "S")
      .in("alpha", "T")
      .out("output")
      .shape([](InferContext& c) { c.output(gamma_shape(c, 1)); })
      .cpu([]<class T>(KernelContext& c, const SeedAttrs& a) {
        const int64_t n = c.out().num_elements();
        draw_gamma<T>(reserved(a, static_cast<uint64_t>(n) * cpu::kBlocksPerGamma, n), c.in(1), c.out());
      })
      .stateful()
      .grad([](const GradCtx& g) {
        return Gradients{{}, gamma_gradient(g.dy(), g.x(1), g.y())};
      })
      .doc("Draws from Gamma(alpha, 1), NaN of a negative alpha; the output's shape is `shape` followed by alpha's.")
      .sample(
          {.in = {Tensor{2}, Tensor{0.5f, 2.f}}, .differentiable = false})  // by moving quantiles, not by the method
      .sample({.in = {Tensor{2}, Tensor{-1.f, 0.f}}, .out = {Tensor{{NAN, 0.f}, {NAN, 0.f}}}, .differentiable = false})
      .sample({.in = {Tensor(2), Tensor{1.f}}, .error = "rank"});

  r.define<MultinomialAttrs>("Multinomial")
      .in("logits", real_numbers)
      .in_host("num_samples", DType::int32)
      .out("output", "output_dtype")
      .shape(categorical_shape)
      .cpu([]<class T>(KernelContext& c, const MultinomialAttrs& a) {
        const uint64_t blocks = cpu::plain_blocks(c.out().num_elements(), 8);
        draw_categories<T>(reserved(a, blocks, c.out().num_elements()), c.in(0), c.out());
      })
      .stateful()
      .doc("Class numbers drawn with probabilities softmax(logits), num_samples per row.")
      .sample({.in = {Tensor{{0.f, 100.f}}, Tensor(2)}, .out = {Tensor{{int64_t{1}, int64_t{1}}}}})
      .sample({.in = {Tensor{{0.f, 100.f}}, Tensor(2)}, .error = "attr 'output_dtype' of string"},
              {.output_dtype = DType::string});

  r.define<SeedAttrs>("RandomShuffle")
      .in("value", all_types)
      .out("output")
      .shape(like<0>)
      .cpu([](KernelContext& c, const SeedAttrs& a) {
        const int64_t rows = c.in(0).rank() == 0 ? 1 : c.in(0).shape()[0];
        const uint64_t blocks = cpu::plain_blocks(rows, 8);
        shuffle_rows(reserved(a, blocks, rows), c.in(0), c.out());
      })
      .stateful()
      .doc("The rows of the input in random order.")
      .not_differentiable()
      .sample({.in = {Tensor{{1.f, 2.f}, {1.f, 2.f}}}, .out = {Tensor{{1.f, 2.f}, {1.f, 2.f}}}});
}

namespace random {
namespace {

[[noreturn]] void no_such_dtype(const char* what, DType dtype) {
  throw invalid_argument("[{}] cannot draw {} values", what, dtype_name(dtype));
}

Tensor raw_draw(const char* name, const ShapeArg& shape, DType dtype, int64_t seed, const Where& where) {
  if (!is_float(dtype)) no_such_dtype(name, dtype);
  const Op<DrawAttrs> op(name);
  return op({shape.tensor()}, {.seed2 = seed, .dtype = dtype}, &where);
}

}  // namespace

void set_seed(int64_t seed) { RandomContext::current().reset(static_cast<uint64_t>(seed)); }

Tensor uniform(const ShapeArg& shape, const Operand& minval, const Operand& maxval, DType dtype, int64_t seed,
               Where where) {
  return composed(where, [&]() -> Tensor {
    if (is_integer(dtype)) {
      if (dtype != DType::int32 && dtype != DType::int64) no_such_dtype("RandomUniformInt", dtype);
      static const Op<SeedAttrs> op("RandomUniformInt");
      return op({shape.tensor(), in_dtype(minval, dtype), in_dtype(maxval, dtype)}, {.seed2 = seed}, &where);
    }
    return scaled_uniform(raw_draw("RandomUniform", shape, dtype, seed, where), minval, maxval);
  });
}
Tensor normal(const ShapeArg& shape, const Operand& mean, const Operand& stddev, DType dtype, int64_t seed,
              Where where) {
  return composed(
      where, [&] { return scaled_normal(raw_draw("RandomStandardNormal", shape, dtype, seed, where), mean, stddev); });
}
Tensor truncated_normal(const ShapeArg& shape, const Operand& mean, const Operand& stddev, DType dtype, int64_t seed,
                        Where where) {
  return composed(where,
                  [&] { return scaled_normal(raw_draw("TruncatedNormal", shape, dtype, seed, where), mean, stddev); });
}
Tensor gamma(const ShapeArg& shape, const Operand& alpha, const Operand& beta, int64_t seed) {
  return composed(shape.where(), [&]() -> Tensor {
    static const Op<SeedAttrs> op("RandomGamma");
    const auto [a, b] = gamma_parameters(alpha, beta);
    return op({shape.tensor(), a}, {.seed2 = seed}, &shape.where()) / b;
  });
}
Tensor categorical(const Operand& logits, int64_t num_samples, DType dtype, int64_t seed) {
  static const Op<MultinomialAttrs> op("Multinomial");
  return op({logits, Tensor(static_cast<int32_t>(num_samples))}, {.seed2 = seed, .output_dtype = dtype});
}
Tensor shuffle(const Operand& value, int64_t seed) {
  static const Op<SeedAttrs> op("RandomShuffle");
  return op({value}, {.seed2 = seed});
}

}  // namespace random
}  // namespace runnel
