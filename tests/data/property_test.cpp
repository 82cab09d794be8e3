// Random pipelines: parallel equals sequential, and a restored iterator gives the rest of the sequence.
#include <random>

#include "runnel/base/crc32c.h"
#include "runnel/base/varint.h"
#include "tests/data/helpers.h"

namespace runnel::data {
namespace {

class Maker {
 public:
  Maker(uint32_t seed, bool parallel) : gen_(seed), parallel_(parallel) {}

  Dataset<Tensor> make() {
    text_.clear();
    Dataset<Tensor> d = source();
    const int stages = pick(1, 5);
    for (int k = 0; k < stages; ++k) d = stage(d);
    return d.take(60);
  }
  const std::string& text() const { return text_; }

 private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(gen_); }
  int calls() {
    const int wish[] = {1, 2, 3, AUTOTUNE};
    const int n = wish[pick(0, 3)];
    return parallel_ ? n : 0;
  }
  Dataset<Tensor> source() {
    const int n = pick(0, 40);
    switch (pick(0, 3)) {
      case 0: text_ += "range "; return range(n);
      case 1: text_ += "slices "; return from_tensor_slices(Tensor::of<int64_t>(iota(n)));
      case 2: text_ += "random "; return random().take(n).map([](Tensor x) { return x % int64_t{1000}; });
      default: text_ += "stream "; return stream(n);
    }
  }
  Dataset<Tensor> stage(const Dataset<Tensor>& d) {
    const int k = pick(0, 17), p = calls(), a = pick(1, 7), b = pick(1, 9);
    switch (k) {
      case 0: text_ += "map "; return d.map([a](Tensor x) { return x * int64_t{a} + int64_t{1}; }, p);
      case 1:
        text_ += "map_random ";
        return d.map([](Tensor x) { return x + random::uniform({}, 0, 100, DType::int64); }, p);
      case 2: text_ += "shuffle "; return d.shuffle(b, a);
      case 3: text_ += "shuffle_all "; return d.shuffle(1000);
      case 4: text_ += "batch_unbatch "; return d.batch(b, {.num_parallel_calls = p}).unbatch();
      case 5: text_ += "repeat "; return d.repeat(a % 3 + 1);
      case 6: text_ += "skip "; return d.skip(a);
      case 7: text_ += "shard "; return d.shard(2, a % 2);
      case 8: text_ += "filter "; return d.filter([](Tensor x) { return x % int64_t{3} != int64_t{0}; });
      case 9: text_ += "prefetch "; return parallel_ ? d.prefetch(b == 9 ? AUTOTUNE : b) : d;
      case 10:
        text_ += "interleave ";
        return d.interleave([b](Tensor x) { return from_tensors(x).repeat(b % 4 + 1); },
                            {.cycle_length = a, .block_length = b % 3 + 1, .num_parallel_calls = p});
      case 11: text_ += "flat_map "; return d.flat_map([](Tensor x) { return range(abs(x).item<int64_t>() % 4); });
      case 12:
        text_ += "window ";
        return d.window(b, {.shift = a}).flat_map([](Dataset<Tensor> w) { return w.shuffle(3, 1); });
      case 13:
        text_ += "group ";
        return d.group_by_window([](Tensor x) { return x % int64_t{3}; },
                                 [](int64_t, Dataset<Tensor> w) { return w.repeat(2); }, b);
      case 14: text_ += "cache "; return d.cache().repeat(2);
      case 15:
        text_ += "scan ";
        return d.scan(Tensor(int64_t{0}), [](Tensor s, Tensor x) { return std::tuple{s + x, s}; });
      case 16: text_ += "rebatch "; return d.batch(a).rebatch(b).unbatch();
      default: text_ += "sample "; return sample_from_datasets<Tensor>({d, range(5)}, {0.5, 0.5});
    }
  }
  std::mt19937 gen_;
  bool parallel_;
  std::string text_;
};

Dataset<Tensor> make(uint32_t seed, bool parallel, std::string* text) {
  random::set_seed(seed);
  Maker maker(seed, parallel);
  Dataset<Tensor> d = maker.make();
  *text = maker.text() + "(seed " + std::to_string(seed) + ")";
  return d;
}

TEST(Property, ParallelEqualsSequential) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::string text;
    const auto sequential = make(seed, false, &text), parallel = make(seed, true, &text);
    EXPECT_EQ(ints(sequential), ints(parallel)) << text;
    EXPECT_EQ(ints(sequential), ints(parallel)) << "second pass: " << text;
  }
}

void check_restore(bool parallel, uint32_t first, uint32_t last) {
  for (uint32_t seed = first; seed < last; ++seed) {
    std::string text;
    const auto d = make(seed, parallel, &text);
    const Ints whole = ints(d);
    const auto n = static_cast<int64_t>(whole.size());
    for (int64_t stop = 0; stop <= n; stop += n < 12 ? 1 : 1 + (stop * 7 + seed) % 9) {
      // Another program, or the same one later: other seeds are drawn there.
      const auto fresh = make(seed, parallel, &text);
      auto it = fresh.make_iterator();
      Ints seen;
      for (int64_t k = 0; k < stop; ++k) {
        auto x = it.next();
        ASSERT_TRUE(x) << text;
        seen.push_back(x->item<int64_t>());
      }
      const std::string state = it.save();
      EXPECT_LT(state.size(), 8192u) << text;
      const Ints expected = rest(it);
      random::set_seed(seed + 1000);
      Maker again(seed, parallel);
      auto resumed = again.make().make_iterator();
      resumed.restore(state);
      ASSERT_EQ(rest(resumed), expected) << text << " after " << stop;
      // An iterator that went elsewhere meanwhile comes back too.
      it.restore(state);
      ASSERT_EQ(rest(it), expected) << text << " again after " << stop;
    }
  }
}

TEST(Property, RestoredEqualsTheRest) { check_restore(false, 0, 120); }
TEST(Property, RestoredEqualsTheRestInParallel) { check_restore(true, 200, 260); }

TEST(Property, RestoredWithoutOrderLosesNothing) {
  const auto d = stream(200).map([](Tensor x) { return x; }, {.num_parallel_calls = 3, .deterministic = false});
  for (const int stop : {0, 1, 17, 90, 199, 200}) {
    auto it = d.make_iterator();
    Ints all;
    for (int k = 0; k < stop; ++k) all.push_back(it.next()->item<int64_t>());
    const std::string state = it.save();
    auto between = d.make_iterator(), resumed = d.make_iterator();
    between.restore(state);
    resumed.restore(between.save());
    for (const int64_t x : rest(resumed)) all.push_back(x);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, iota(200)) << stop;
  }
}

TEST(Property, AStateFitsItsPipelineOnly) {
  const std::string state = range(5).batch(2).make_iterator().save();
  auto other = range(5).batch(3).make_iterator();
  expect_error([&] { other.restore(state); }, Code::failed_precondition, "another pipeline");
  expect_error([&] { other.restore(state.substr(0, state.size() - 1)); }, Code::data_loss, "");
  expect_error([&] { other.restore("nonsense"); }, Code::data_loss, "no saved state");
}

// What only looks like a state is an error, and the iterator is where it was.
TEST(Property, AFailedRestoreChangesNothing) {
  const auto d = range(20).cache().shuffle(5, {.seed = 1, .reshuffle_each_iteration = false}).batch(2).prefetch(2);
  auto it = d.make_iterator(), same = d.make_iterator();
  for (int k = 0; k < 3; ++k) EXPECT_EQ(ints(*it.next()), ints(*same.next()));
  const std::string state = it.save();
  for (size_t k = 0; k < state.size(); ++k) {
    std::string damaged = state.substr(0, state.size() - 4);
    if (k < damaged.size()) damaged[k] = static_cast<char>(damaged[k] ^ 0x41);
    const uint32_t sum = crc32c(damaged.data(), damaged.size());
    append_fixed32(damaged, sum);
    auto other = d.make_iterator();
    try {
      other.restore(damaged);
    } catch (const Error& e) {
      EXPECT_THAT(std::string(e.what()), ::testing::HasSubstr("[restore]")) << k;
    }
    rest(other);  // works, whatever came of it
  }
  expect_error([&] { it.restore(state.substr(1)); }, Code::data_loss, "no saved state");
  EXPECT_EQ(rest(it), rest(same));
}

}  // namespace
}  // namespace runnel::data
