#pragma once

#include <cstdint>
#include <vector>

#include "runnel/base/source_site.h"
#include "runnel/op/axes.h"
#include "runnel/op/operand.h"
#include "runnel/ops/state.h"

namespace runnel::random {

// Sets the seed of every stateful draw of the program and starts their streams anew: the same calls in the same
// order then give the same numbers. Without it each run of the program differs.
RUNNEL_API void set_seed(int64_t seed);

using Where = SourceSite;

// Draws of the given shape. `seed` gives the call a stream of its own under the global seed. Integer dtypes (int32,
// int64) are uniform in [minval, maxval), which must then be given.
RUNNEL_API Tensor uniform(const ShapeArg& shape, const Operand& minval = 0, const Operand& maxval = 1,
                          DType dtype = DType::float32, int64_t seed = 0, Where where = Where::current());
RUNNEL_API Tensor normal(const ShapeArg& shape, const Operand& mean = 0, const Operand& stddev = 1,
                         DType dtype = DType::float32, int64_t seed = 0, Where where = Where::current());
// Values more than two standard deviations from the mean are drawn again.
RUNNEL_API Tensor truncated_normal(const ShapeArg& shape, const Operand& mean = 0, const Operand& stddev = 1,
                                   DType dtype = DType::float32, int64_t seed = 0, Where where = Where::current());
// shape + (alpha / beta).shape draws of Gamma(alpha, rate beta).
RUNNEL_API Tensor gamma(const ShapeArg& shape, const Operand& alpha, const Operand& beta = 1, int64_t seed = 0);
// num_samples class numbers per row of logits.
RUNNEL_API Tensor categorical(const Operand& logits, int64_t num_samples, DType dtype = DType::int64, int64_t seed = 0);
// The rows of `value` in random order.
RUNNEL_API Tensor shuffle(const Operand& value, int64_t seed = 0);

// The same with the state in the call: a seed of two integers fixes the result, TensorFlow's own numbers.
RUNNEL_API Tensor stateless_uniform(const ShapeArg& shape, const Operand& seed, const Operand& minval = 0,
                                    const Operand& maxval = 1, DType dtype = DType::float32);
RUNNEL_API Tensor stateless_normal(const ShapeArg& shape, const Operand& seed, const Operand& mean = 0,
                                   const Operand& stddev = 1, DType dtype = DType::float32);
RUNNEL_API Tensor stateless_truncated_normal(const ShapeArg& shape, const Operand& seed, const Operand& mean = 0,
                                             const Operand& stddev = 1, DType dtype = DType::float32);
RUNNEL_API Tensor stateless_gamma(const ShapeArg& shape, const Operand& seed, const Operand& alpha,
                                  const Operand& beta = 1);
RUNNEL_API Tensor stateless_categorical(const Operand& logits, int64_t num_samples, const Operand& seed,
                                        DType dtype = DType::int64);

// A stream of random numbers whose state is a variable of three integers (counter, counter, key), as TensorFlow's.
class RUNNEL_API Generator {
 public:
  static Generator from_seed(int64_t seed);
  static Generator from_state(const Operand& state);
  static Generator from_non_deterministic_state();

  Tensor uniform(const ShapeArg& shape, const Operand& minval = 0, const Operand& maxval = 1,
                 DType dtype = DType::float32);
  Tensor normal(const ShapeArg& shape, const Operand& mean = 0, const Operand& stddev = 1,
                DType dtype = DType::float32);
  Tensor truncated_normal(const ShapeArg& shape, const Operand& mean = 0, const Operand& stddev = 1,
                          DType dtype = DType::float32);
  // [2, count] integers to use as seeds of stateless calls.
  Tensor make_seeds(int64_t count = 1, Where where = Where::current());
  // `count` generators whose streams do not overlap with each other or with this one.
  std::vector<Generator> split(int64_t count = 1, Where where = Where::current());
  void skip(int64_t delta, Where where = Where::current());  // passes over delta numbers
  void reset_from_seed(int64_t seed);
  void reset_from_state(const Operand& state);
  void reset(const Operand& state) { reset_from_state(state); }

  Tensor key(Where where = Where::current()) const;
  const Variable& state() const { return state_; }
  const std::shared_ptr<Trackable>& node() const { return node_; }  // of the object graph, with the state as its part

 private:
  explicit Generator(Variable state);

  Variable state_;
  std::shared_ptr<Trackable> node_;
};

}  // namespace runnel::random
