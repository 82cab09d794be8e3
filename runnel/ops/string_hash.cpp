// Strings as numbers of buckets.
#include "runnel/base/string_hash.h"

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/string_kernels.h"
#include "runnel/ops/strings.h"

namespace runnel {
namespace {

struct BucketAttrs {
  int64_t num_buckets = 1;
  static constexpr auto fields() {
    return field_list(field("num_buckets", &BucketAttrs::num_buckets, {.required = true, .minimum = 1}));
  }
};
struct KeyedBucketAttrs {
  int64_t num_buckets = 1;
  std::vector<int64_t> key;
  static constexpr auto fields() {
    return field_list(field("num_buckets", &KeyedBucketAttrs::num_buckets, {.required = true, .minimum = 1}),
                      field("key", &KeyedBucketAttrs::key, {.required = true}));
  }
};

template <class Hash>
void put_in_buckets(KernelContext& c, int64_t num_buckets, Hash hash) {
  for_each_number_of_string<int64_t>(
      c, [&](std::string_view s) { return static_cast<int64_t>(hash(s) % static_cast<uint64_t>(num_buckets)); });
}

}  // namespace

void register_string_hash(Registry& r) {
  r.define<BucketAttrs>("StringToHashBucketFast")
      .in("input", DType::string)
      .out("output", DType::int64)
      .shape(like<0>)
      .cpu([](KernelContext& c, const BucketAttrs& a) { put_in_buckets(c, a.num_buckets, farm_fingerprint64); })
      .doc("A number in [0, num_buckets) for each string, the same in every program (FarmHash).")
      .sample({.in = {Tensor{"Hello", "TensorFlow", "2.x"}}, .out = {Tensor{int64_t{0}, int64_t{2}, int64_t{2}}}},
              {.num_buckets = 3})
      .sample({.in = {Tensor{"a"}}, .error = "'num_buckets' of 0 must be at least minimum 1"}, {.num_buckets = 0});

  r.define<BucketAttrs>("StringToHashBucket")
      .in("string_tensor", DType::string)
      .out("output", DType::int64)
      .shape(like<0>)
      .cpu([](KernelContext& c, const BucketAttrs& a) {
        put_in_buckets(c, a.num_buckets, [](std::string_view s) { return murmur64(s, 0xDECAFCAFFEu); });
      })
      .doc("A number in [0, num_buckets) for each string.")
      .sample({.in = {Tensor{"a", "b", ""}}, .out = {Tensor{int64_t{8}, int64_t{0}, int64_t{9}}}}, {.num_buckets = 10});

  r.define<KeyedBucketAttrs>("StringToHashBucketStrong")
      .in("input", DType::string)
      .out("output", DType::int64)
      .shape([](InferContext& c, const KeyedBucketAttrs& a) {
        if (a.key.size() != 2) throw invalid_argument("key must be 2 integers, got {}", a.key.size());
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c, const KeyedBucketAttrs& a) {
        put_in_buckets(c, a.num_buckets, [&](std::string_view s) {
          return sip_hash24(s, static_cast<uint64_t>(a.key[0]), static_cast<uint64_t>(a.key[1]));
        });
      })
      .doc("A number in [0, num_buckets) for each string; who does not know the key cannot find strings that collide.")
      .sample({.in = {Tensor{"Hello", "TF"}}, .out = {Tensor{int64_t{2}, int64_t{0}}}},
              {.num_buckets = 3, .key = {1, 2}})
      .sample({.in = {Tensor{"a"}}, .error = "key must be 2 integers"}, {.num_buckets = 3, .key = {1}});
}

namespace strings {

Tensor to_hash_bucket_fast(const Operand& input, int64_t num_buckets) {
  static const Op<BucketAttrs> op("StringToHashBucketFast");
  return op({input}, {.num_buckets = num_buckets});
}
Tensor to_hash_bucket(const Operand& input, int64_t num_buckets) {
  static const Op<BucketAttrs> op("StringToHashBucket");
  return op({input}, {.num_buckets = num_buckets});
}
Tensor to_hash_bucket_strong(const Operand& input, int64_t num_buckets, const std::vector<int64_t>& key) {
  static const Op<KeyedBucketAttrs> op("StringToHashBucketStrong");
  return op({input}, {.num_buckets = num_buckets, .key = key});
}

}  // namespace strings
}  // namespace runnel
