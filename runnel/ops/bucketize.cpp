// Numbers as numbers of the buckets they fall into.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"

namespace runnel {
namespace {

struct BucketizeAttrs {
  std::vector<double> boundaries;
  static constexpr auto fields() {
    return field_list(field("boundaries", &BucketizeAttrs::boundaries, {.required = true}));
  }
};

struct FeatureCountAttrs {
  int64_t num_features = 1;
  static constexpr auto fields() {
    return field_list(field("num_features", &FeatureCountAttrs::num_features, {.required = true, .minimum = 0}));
  }
};

// How many boundaries (sorted floats) are not above x; all of them for NaN. Integers are compared as floats, doubles as
// they are.
template <class T>
int32_t bucket_of(T x, const float* begin, const float* end) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  return static_cast<int32_t>(std::upper_bound(begin, end, static_cast<Real>(x)) - begin);
}

}  // namespace

void register_bucketize(Registry& r) {
  r.define<BucketizeAttrs>("Bucketize")
      .type("T", Types<int32_t, int64_t, float, double>{})
      .in("input")
      .out("output", DType::int32)
      .shape([](InferContext& c, const BucketizeAttrs& a) {
        if (!std::is_sorted(a.boundaries.begin(), a.boundaries.end())) throw invalid_argument("boundaries must go up");
        c.output(c.input(0));
      })
      .cpu([]<class T>(KernelContext& c, const BucketizeAttrs& a) {
        const std::vector<float> at(a.boundaries.begin(), a.boundaries.end());
        for (int64_t i = 0; i < c.out().num_elements(); ++i) {
          c.out<int32_t>()[i] = bucket_of(c.in<T>(0)[i], at.data(), at.data() + at.size());
        }
      })
      .doc("The number of the bucket between boundaries that each value falls into: how many are not above it.")
      .sample({.in = {Tensor{{-5.f, 10000.f}, {150.f, 10.f}}}, .out = {Tensor{{0, 3}, {3, 2}}}},
              {.boundaries = {0, 10, 100}})
      .sample({.in = {Tensor{1, 2}}, .out = {Tensor{0, 1}}}, {.boundaries = {1.5}})
      .sample({.in = {Tensor{1.f}}, .error = "boundaries must go up"}, {.boundaries = {2, 1}});

  r.define<FeatureCountAttrs>("BoostedTreesBucketize")
      .in_list("float_values", "num_features", DType::float32)
      .in_list("bucket_boundaries", "num_features", DType::float32)
      .out_list("buckets", "num_features", DType::int32)
      .shape([](InferContext& c) {
        for (int i = 0; i < c.num_outputs(); ++i) {
          c.require_rank(i, 1);
          c.require_rank(c.num_outputs() + i, 1);
          c.output(i, c.input(i));
        }
      })
      .cpu([](KernelContext& c) {
        for (int k = 0; k < c.num_outputs(); ++k) {
          const Tensor& at = c.in(c.num_outputs() + k);
          const auto* begin = at.data<float>();
          const int64_t last = std::max<int64_t>(at.num_elements() - 1, 0);
          for (int64_t i = 0; i < c.out(k).num_elements(); ++i) {
            // The first boundary that is not below the value, or the last one.
            const int64_t bucket = std::lower_bound(begin, begin + at.num_elements(), c.in<float>(k)[i]) - begin;
            c.out<int32_t>(k)[i] = static_cast<int32_t>(std::min(bucket, last));
          }
        }
      })
      .doc("For every feature the number of the first of its boundaries that is not below each value, or the last one.")
      .sample({.in = {Tensor{-1.f, 2.f, 9.f}, Tensor{1.f, 3.f}}, .out = {Tensor{0, 1, 1}}}, {.num_features = 1});
}

}  // namespace runnel
