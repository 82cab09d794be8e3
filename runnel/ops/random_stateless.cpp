// Draws whose state is an input, and random::Generator over them.
#include <algorithm>
#include <mutex>
#include <random>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/random.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"
#include "runnel/ops/random_kernels.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"

namespace runnel {
namespace {

struct StatelessDrawAttrs {
  DType dtype = DType::float32;
  static constexpr auto fields() {
    return field_list(field("dtype", &StatelessDrawAttrs::dtype, {.types = floating.mask}));
  }
};
struct CategoryAttrs {
  DType output_dtype = DType::int64;
  static constexpr auto fields() {
    return field_list(field("output_dtype", &CategoryAttrs::output_dtype, {.types = index_types.mask}));
  }
};

constexpr int kPhiloxAlgorithm = 1;  // TensorFlow's number for it

// The generator that a uint64 key [1] and counter [2] describe.
Philox generator_from(const Tensor& key, const Tensor& counter) {
  // TensorFlow takes longer counters, of which other algorithms use more.
  if (!(key.shape() == Shape{1}) || counter.rank() != 1 || counter.num_elements() < 2) {
    throw invalid_argument("key needs shape [1] and counter 2 values or more, got {} and {}", key.shape().str(),
                           counter.shape().str());
  }
  const uint64_t k = *key.data<uint64_t>();
  const uint64_t lo = counter.data<uint64_t>()[0];
  const uint64_t hi = counter.data<uint64_t>()[1];
  auto word = [](uint64_t v, int i) { return static_cast<uint32_t>(v >> (32 * i)); };
  return Philox({word(lo, 0), word(lo, 1), word(hi, 0), word(hi, 1)}, {word(k, 0), word(k, 1)});
}

}  // namespace

// TensorFlow stirs the two seeds into key and counter, so that weak seeds do no harm.
Philox generator_from_seed(const Tensor& seed) {
  const Dims s = int_values(seed);
  if (seed.rank() != 1 || s.size() != 2) throw invalid_argument("seed needs shape [2], got {}", seed.shape().str());
  auto word = [&](size_t i, int half) { return static_cast<uint32_t>(static_cast<uint64_t>(s[i]) >> (32 * half)); };
  Philox stir({word(0, 0), word(0, 1), word(1, 0), word(1, 1)}, {0x3ec8f720u, 0x02461e29u});
  const Philox::Block mixed = stir();
  return Philox({0, 0, mixed[2], mixed[3]}, {mixed[0], mixed[1]});
}

namespace {

void check_algorithm(KernelContext& c, int input) {
  const int64_t alg = c.int_scalar(input);
  if (alg != kPhiloxAlgorithm && alg != 3) throw invalid_argument("alg must be 1 (Philox) or 3 (auto), got {}", alg);
}

// Passes over `delta` numbers, each of which has 256 blocks to itself, as TensorFlow reserves them; the counter, the
// first two of the three values, is 128 bits wide.
void read_and_skip(KernelContext& c) {
  check_algorithm(c, 1);
  VariableSlot& slot = variable_slot(c.in(0));
  std::lock_guard lock(slot.mutex);
  slot.require_value();
  if (slot.value.dtype() != DType::int64 || !(slot.value.shape() == Shape{3})) {
    throw invalid_argument("{} holds {}{}; the state of a generator is int64[3]", slot.describe(),
                           dtype_name(slot.value.dtype()), slot.value.shape().str());
  }
  std::copy_n(slot.value.data<int64_t>(), 3, c.out<int64_t>());
  const uint64_t delta = *c.in<uint64_t>(2);
  auto word = [&](int i) { return static_cast<uint64_t>(c.out<int64_t>()[i]); };
  const uint64_t low = word(0) + (delta << 8);
  const uint64_t high = word(1) + (delta >> 56) + (low < word(0) ? 1 : 0);
  int64_t* state = slot.writable().mutable_data<int64_t>();
  state[0] = static_cast<int64_t>(low);
  state[1] = static_cast<int64_t>(high);
}

template <Distribution kind>
void define_draw(Registry& r, const char* name, const char* doc) {
  r.define<StatelessDrawAttrs>(name)
      .type("Tshape", index_types, DType::int32)
      .in_host("shape", "Tshape")
      .in_host("key", DType::uint64)
      .in_host("counter", DType::uint64)
      .in_host("alg", DType::int32)
      .out("output", "dtype")
      .shape([](InferContext& c) {
        c.require_rank(3, 0);
        drawn_shape(c);
      })
      .cpu([](KernelContext& c) {
        check_algorithm(c, 3);
        draw_into(kind, generator_from(c.in(1), c.in(2)), c.out());
      })
      .doc(doc)
      .sample({.in = {Tensor{3}, Tensor{uint64_t{1}}, Tensor{uint64_t{0}, uint64_t{0}}, Tensor(1)}});
}

}  // namespace

void register_random_stateless(Registry& r) {
  r.define("StatelessRandomGetKeyCounter")
      .type("Tseed", index_types, DType::int64)
      .in("seed")
      .out("key", DType::uint64)
      .out("counter", DType::uint64)
      .shape([](InferContext& c) {
        c.output(0, PartialShape{1});
        c.output(1, PartialShape{2});
      })
      .cpu([](KernelContext& c) {
        const Philox gen = generator_from_seed(c.in(0));
        auto join = [](uint32_t lo, uint32_t hi) { return uint64_t{hi} << 32 | lo; };
        *c.out<uint64_t>(0) = join(gen.key()[0], gen.key()[1]);
        c.out<uint64_t>(1)[0] = join(gen.counter()[0], gen.counter()[1]);
        c.out<uint64_t>(1)[1] = join(gen.counter()[2], gen.counter()[3]);
      })
      .doc("The key and counter of the Philox generator that a seed of two integers stands for.")
      .sample({.in = {Tensor{1, 2}}})
      .sample({.in = {Tensor{1, 2, 3}}, .error = "shape [2]"});

  r.define("RngReadAndSkip")
      .in("resource", DType::resource)
      .in_host("alg", DType::int32)
      .in_host("delta", DType::uint64)
      .out_host("value", DType::int64)
      .shape([](InferContext& c) {
        c.require_rank(1, 0);
        c.require_rank(2, 0);
        c.output(PartialShape{3});
      })
      .cpu([](KernelContext& c) { read_and_skip(c); })
      .stateful()
      .doc("The state of a generator, which then stands `delta` numbers later.");

  define_draw<Distribution::uniform>(r, "StatelessRandomUniformV2",
                                     "Uniform draws from [0, 1), fixed by key and counter.");
  define_draw<Distribution::normal>(r, "StatelessRandomNormalV2", "Standard normal draws, fixed by key and counter.");
  define_draw<Distribution::truncated_normal>(
      r, "StatelessTruncatedNormalV2",
      "Standard normal draws within two standard deviations, fixed by key and counter.");

  r.define("StatelessRandomUniformIntV2")
      .type("dtype", index_types)
      .in_host("shape", "Tshape")
      .in_host("key", DType::uint64)
      .in_host("counter", DType::uint64)
      .in_host("alg", DType::int32)
      .in("minval", "dtype")
      .in("maxval", "dtype")
      .out("output", "dtype")
      .shape([](InferContext& c) {
        c.require_rank(3, 0);
        drawn_shape(c);
      })
      .cpu([]<class T>(KernelContext& c) {
        check_algorithm(c, 3);
        draw_ints<T>(generator_from(c.in(1), c.in(2)), c.in(4), c.in(5), c.out());
      })
      .doc("Uniform integers from [minval, maxval), fixed by key and counter.")
      .sample(
          {.in = {Tensor{3}, Tensor{uint64_t{1}}, Tensor{uint64_t{0}, uint64_t{0}}, Tensor(1), Tensor(2), Tensor(3)},
           .out = {Tensor{2, 2, 2}}})
      .sample(
          {.in = {Tensor{3}, Tensor{uint64_t{1}}, Tensor{uint64_t{0}, uint64_t{0}}, Tensor(1), Tensor(7), Tensor(7)},
           .error = "minval < maxval"});

  r.define("StatelessRandomGammaV3")
      .type("dtype", Types<Half, float, double>{})
      .in_host("shape", "shape_dtype")
      .in_host("key", DType::uint64)
      .in_host("counter", DType::uint64)
      .in_host("alg", DType::int32)
      .in("alpha", "dtype")
      .out("output", "dtype")
      .shape([](InferContext& c) {
        c.require_rank(0, 1);
        c.require_rank(3, 0);
        const PartialShape shape = constant_sizes(c, 0);
        const PartialShape& alpha = c.input(4);
        c.output(shape);
        if (!shape.has_rank() || !alpha.has_rank() || std::count(shape.begin(), shape.end(), 0) > 0) return;
        bool ends_with = shape.rank() >= alpha.rank();
        for (int i = 1; ends_with && i <= alpha.rank(); ++i) {
          const int64_t a = shape[shape.rank() - i], b = alpha[alpha.rank() - i];
          ends_with = a < 0 || b < 0 || a == b;
        }
        if (!ends_with) throw invalid_argument("shape {} must end with that of alpha, {}", shape.str(), alpha.str());
      })
      .cpu([]<class T>(KernelContext& c) {
        check_algorithm(c, 3);
        draw_gamma<T>(generator_from(c.in(1), c.in(2)), c.in(4), c.out());
      })
      .grad([](const GradCtx& g) {
        return Gradients{{}, {}, {}, {}, gamma_gradient(g.dy(), g.x(4), g.y())};
      })
      .doc("Gamma(alpha, 1) draws, fixed by key and counter; shape ends with that of alpha.")
      .sample(
          {.in = {Tensor{3, 1}, Tensor{uint64_t{1}}, Tensor{uint64_t{0}, uint64_t{0}}, Tensor(1), Tensor{0.5f, 2.f}},
           .error = "must end with that of alpha"})
      .sample(
          {.in = {Tensor{3, 2}, Tensor{uint64_t{1}}, Tensor{uint64_t{0}, uint64_t{0}}, Tensor(1), Tensor{0.5f, 2.f}},
           .differentiable = false})  // by moving quantiles: differences of the method's draws tell nothing of it
      .sample(
          {.in = {Tensor{0, 2}, Tensor{uint64_t{1}}, Tensor{uint64_t{0}, uint64_t{0}}, Tensor(1), Tensor{0.5f, 2.f}},
           .out = {Tensor::empty(DType::float32, {0, 2})}});

  r.define<CategoryAttrs>("StatelessMultinomial")
      .in("logits", real_numbers)
      .in_host("num_samples", DType::int32)
      .type("Tseed", index_types, DType::int64)
      .in_host("seed", "Tseed")
      .out("output", "output_dtype")
      .shape(categorical_shape)
      .cpu([]<class T>(KernelContext& c) { draw_categories<T>(generator_from_seed(c.in(2)), c.in(0), c.out()); })
      .doc("Class numbers drawn with probabilities softmax(logits), fixed by the seed.")
      .sample({.in = {Tensor{{0.f, 50.f, 0.f}}, Tensor(2), Tensor{1, 2}}, .out = {Tensor{{int64_t{1}, int64_t{1}}}}});
}

namespace random {
namespace {

Tensor algorithm() { return Tensor(kPhiloxAlgorithm); }

struct KeyCounter {
  Tensor key, counter;
};

KeyCounter from_seed(const Operand& seed) {
  static const Op op("StatelessRandomGetKeyCounter");
  auto both = op.many({seed});
  return {both[0], both[1]};
}

Tensor draw(const char* name, const ShapeArg& shape, const KeyCounter& at, DType dtype) {
  if (!is_float(dtype)) {
    throw invalid_argument("[{}] cannot draw {} values", name, dtype_name(dtype));
  }
  const Op<StatelessDrawAttrs> op(name);
  return op({shape.tensor(), at.key, at.counter, algorithm()}, {.dtype = dtype}, &shape.where());
}

Tensor draw_uniform(const ShapeArg& shape, const KeyCounter& at, const Operand& minval, const Operand& maxval,
                    DType dtype) {
  if (is_integer(dtype)) {
    static const Op op("StatelessRandomUniformIntV2");
    return op({shape.tensor(), at.key, at.counter, algorithm(), in_dtype(minval, dtype), in_dtype(maxval, dtype)}, {},
              &shape.where());
  }
  return scaled_uniform(draw("StatelessRandomUniformV2", shape, at, dtype), minval, maxval);
}

}  // namespace

Tensor stateless_uniform(const ShapeArg& shape, const Operand& seed, const Operand& minval, const Operand& maxval,
                         DType dtype) {
  return composed(shape.where(), [&] { return draw_uniform(shape, from_seed(seed), minval, maxval, dtype); });
}
Tensor stateless_normal(const ShapeArg& shape, const Operand& seed, const Operand& mean, const Operand& stddev,
                        DType dtype) {
  return composed(shape.where(), [&] {
    return scaled_normal(draw("StatelessRandomNormalV2", shape, from_seed(seed), dtype), mean, stddev);
  });
}
Tensor stateless_truncated_normal(const ShapeArg& shape, const Operand& seed, const Operand& mean,
                                  const Operand& stddev, DType dtype) {
  return composed(shape.where(), [&] {
    return scaled_normal(draw("StatelessTruncatedNormalV2", shape, from_seed(seed), dtype), mean, stddev);
  });
}
Tensor stateless_gamma(const ShapeArg& shape, const Operand& seed, const Operand& alpha, const Operand& beta) {
  return composed(shape.where(), [&]() -> Tensor {
    static const Op op("StatelessRandomGammaV3");
    const auto [a, b] = gamma_parameters(alpha, beta);
    const KeyCounter at = from_seed(seed);
    return op({shape.tensor(), at.key, at.counter, algorithm(), a}, {}, &shape.where()) / b;
  });
}
Tensor stateless_categorical(const Operand& logits, int64_t num_samples, const Operand& seed, DType dtype) {
  static const Op<CategoryAttrs> op("StatelessMultinomial");
  return op({logits, Tensor(static_cast<int32_t>(num_samples)), seed}, {.output_dtype = dtype});
}

// The seed fills the state from its front, as in TensorFlow: it is the counter.
namespace {
// What checkpoints see of a generator.
class GeneratorNode : public Trackable {
 public:
  explicit GeneratorNode(const Variable& state) { track("_state_var", state); }
  bool holds_weights() const override { return false; }
};
}  // namespace

Generator::Generator(Variable state) : state_(std::move(state)), node_(std::make_shared<GeneratorNode>(state_)) {}
Generator Generator::from_seed(int64_t seed) { return from_state(Tensor{seed, int64_t{0}, int64_t{0}}); }
Generator Generator::from_state(const Operand& state) {
  return composed(state.where(), [&]() -> Generator {
    Generator g(Variable(Tensor{int64_t{0}, int64_t{0}, int64_t{0}}, {.name = "StateVar", .trainable = false}));
    g.reset_from_state(state);
    return g;
  });
}
Generator Generator::from_non_deterministic_state() {
  std::random_device entropy;
  auto word = [&] { return static_cast<int64_t>(uint64_t{entropy()} << 32 | entropy()); };
  const int64_t a = word(), b = word(), c = word();
  return from_state(Tensor{a, b, c});
}

void Generator::reset_from_seed(int64_t seed) { state_.assign(Tensor{seed, int64_t{0}, int64_t{0}}); }
void Generator::reset_from_state(const Operand& state) { state_.assign(state); }

Tensor Generator::key(Where where) const { return Tensor(state_.value(where).host<int64_t>(where)[2]); }

void Generator::skip(int64_t delta, Where where) {
  static const Op op("RngReadAndSkip");
  op({state_.handle(), algorithm(), Tensor(static_cast<uint64_t>(delta))}, {}, &where);
}

namespace {
// Key and counter of a generator for as many numbers as `shape` says, which it then passes over.
KeyCounter next_draw(const Variable& state, const ShapeArg& shape) {
  static const Op op("RngReadAndSkip");
  const Tensor delta = cast(reduce_prod(cast(shape.tensor(), DType::int64)), DType::uint64);
  const Tensor words = bitcast(op({state.handle(), algorithm(), delta}), DType::uint64);
  return {words(slice(2, 3)), words(slice(0, 2))};
}
}  // namespace

Tensor Generator::uniform(const ShapeArg& shape, const Operand& minval, const Operand& maxval, DType dtype) {
  return composed(shape.where(),
                  [&]() -> Tensor { return draw_uniform(shape, next_draw(state_, shape), minval, maxval, dtype); });
}
Tensor Generator::normal(const ShapeArg& shape, const Operand& mean, const Operand& stddev, DType dtype) {
  return composed(shape.where(), [&]() -> Tensor {
    return scaled_normal(draw("StatelessRandomNormalV2", shape, next_draw(state_, shape), dtype), mean, stddev);
  });
}
Tensor Generator::truncated_normal(const ShapeArg& shape, const Operand& mean, const Operand& stddev, DType dtype) {
  return composed(shape.where(), [&]() -> Tensor {
    return scaled_normal(draw("StatelessTruncatedNormalV2", shape, next_draw(state_, shape), dtype), mean, stddev);
  });
}

Tensor Generator::make_seeds(int64_t count, Where where) {
  return composed(where, [&]() -> Tensor {
    const Tensor low =
        uniform({count}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64);
    return stack({low, zeros_like(low)});
  });
}

std::vector<Generator> Generator::split(int64_t count, Where where) {
  return composed(where, [&]() -> std::vector<Generator> {
    const auto keys = uniform({count}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64)
                          .to_vector<int64_t>();
    std::vector<Generator> parts;
    for (int64_t key : keys) parts.push_back(from_state(Tensor{int64_t{0}, int64_t{0}, key}));
    return parts;
  });
}

}  // namespace random
}  // namespace runnel
