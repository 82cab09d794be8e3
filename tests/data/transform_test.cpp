#include <atomic>
#include <numeric>
#include <set>

#include "runnel/tensor/allocator.h"
#include "tests/data/helpers.h"

namespace runnel::data {
namespace {

// 0, 1 1, 2 2 2, ...: vectors of growing length.
Dataset<Tensor> growing(int64_t n) {
  return range(n).map([](Tensor x) { return fill({x.item<int64_t>() + 1}, x); });
}

TEST(Filter, KeepsAndStops) {
  for (const auto& d : {range(10), stream(10)}) {
    EXPECT_EQ(ints(d.filter([](Tensor x) { return x % 3 == int64_t{0}; })), (Ints{0, 3, 6, 9}));
    EXPECT_EQ(ints(d.filter([](Tensor x) { return x.item<int64_t>() > 7; })), (Ints{8, 9}));
    EXPECT_EQ(ints(d.take_while([](Tensor x) { return x < int64_t{4}; })), iota(4));
  }
  const auto pairs = zip(range(4), range(4, 8)).filter([](Tensor a, Tensor) { return a > int64_t{1}; });
  for (auto [a, b] : pairs) EXPECT_EQ(b.item<int64_t>() - a.item<int64_t>(), 4);
  const auto traced = function([](Tensor x) { return x > int64_t{7}; });
  EXPECT_EQ(ints(range(10).filter(traced)), (Ints{8, 9}));
}

TEST(FlatMap, JoinsDatasets) {
  EXPECT_EQ(ints(range(4).flat_map([](Tensor x) { return range(x.item<int64_t>()); })), (Ints{0, 0, 1, 0, 1, 2}));
}

// The order that TensorFlow's documentation shows for cycle_length 2, block_length 4.
TEST(Interleave, TakesTurns) {
  const auto repeated = [](Tensor x) { return from_tensors(x).repeat(6); };
  const Ints expected{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5};
  for (const int parallel : {0, 1, 2, AUTOTUNE}) {
    const InterleaveOptions options{.cycle_length = 2, .block_length = 4, .num_parallel_calls = parallel};
    EXPECT_EQ(ints(range(1, 6).interleave(repeated, options)), expected) << parallel;
  }
}

TEST(Interleave, UnevenInputsAndNoOrder) {
  const auto up_to = [](Tensor x) {
    const int64_t n = x.item<int64_t>();
    return range(100 * n, 100 * n + n * 7 % 5);
  };
  Ints all = ints(range(12).flat_map(up_to));
  for (const int64_t cycle : {1, 3, 20}) {
    const Ints sequential = ints(range(12).interleave(up_to, {.cycle_length = cycle}));
    EXPECT_EQ(ints(range(12).interleave(up_to, {.cycle_length = cycle, .num_parallel_calls = 3})), sequential);
    Ints any = ints(
        range(12).interleave(up_to, {.cycle_length = cycle, .num_parallel_calls = AUTOTUNE, .deterministic = false}));
    std::sort(any.begin(), any.end());
    EXPECT_EQ(any, all);
  }
}

TEST(PaddedBatch, FillsUp) {
  std::vector<Tensor> batches;
  for (const Tensor& t : growing(5).padded_batch(2)) batches.push_back(t);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].shape(), Shape({2, 2}));
  EXPECT_EQ(ints(batches[0]), (Ints{0, 0, 1, 1}));
  EXPECT_EQ(ints(batches[1]), (Ints{2, 2, 2, 0, 3, 3, 3, 3}));
  EXPECT_EQ(batches[2].shape(), Shape({1, 5}));
  auto wide =
      growing(3).padded_batch(3, {.padded_shapes = {{4}}, .padding_values = {Tensor(int64_t{-1})}}).make_iterator();
  EXPECT_EQ(ints(*wide.next()), (Ints{0, -1, -1, -1, 1, 1, -1, -1, 2, 2, 2, -1}));
  auto narrow = growing(3).padded_batch(3, {.padded_shapes = {{2}}}).make_iterator();
  expect_error([&] { narrow.next(); }, Code::invalid_argument, "padded_shapes allows 2");
  auto wrong = growing(3).padded_batch(3, {.padding_values = {Tensor(1.f)}}).make_iterator();
  expect_error([&] { wrong.next(); }, Code::invalid_argument, "padding value");
  // Two dimensions, and texts.
  const auto squares = range(1, 3).map([](Tensor x) { return ones({x.item<int64_t>(), x.item<int64_t>()}); });
  auto both = squares.padded_batch(2).make_iterator();
  EXPECT_EQ(both.next()->to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 1, 1, 1}));
  const auto words = range(2).map([](Tensor x) { return fill({x.item<int64_t>() + 1}, Tensor("w")); });
  EXPECT_EQ(words.padded_batch(2).make_iterator().next()->to_vector<std::string>(),
            (std::vector<std::string>{"w", "", "w", "w"}));
}

TEST(RaggedBatch, KeepsLengths) {
  auto it = growing(3).ragged_batch(2).make_iterator();
  const RaggedTensor a = *it.next();
  EXPECT_EQ(ints(a.row_splits()), (Ints{0, 1, 3}));
  EXPECT_EQ(ints(a.flat_values()), (Ints{0, 1, 1}));
  EXPECT_EQ(ints(it.next()->flat_values()), (Ints{2, 2, 2}));
  EXPECT_FALSE(it.next());
}

TEST(Unbatch, AndRebatch) {
  for (const auto& d : {range(10).batch(4), stream(10).batch(4)}) {
    EXPECT_EQ(ints(d.unbatch()), iota(10));
    std::vector<Shape> shapes;
    for (const Tensor& t : d.rebatch(3)) shapes.push_back(t.shape());
    EXPECT_EQ(shapes, (std::vector<Shape>{{3}, {3}, {3}, {1}}));
    EXPECT_EQ(ints(d.rebatch(3, true)), iota(9));
    EXPECT_EQ(ints(d.rebatch(20)), iota(10));
  }
  EXPECT_EQ(range(12).batch(4).unbatch().cardinality(), 12);
  auto it = from_tensors(Tensor(1)).unbatch().make_iterator();
  expect_error([&] { it.next(); }, Code::invalid_argument, "scalar");
}

std::vector<Ints> windows(const Dataset<Dataset<Tensor>>& d) {
  std::vector<Ints> all;
  for (const Dataset<Tensor>& w : d) all.push_back(ints(w));
  return all;
}

TEST(Window, OfSuccessiveElements) {
  EXPECT_EQ(windows(range(7).window(3)), (std::vector<Ints>{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(windows(range(7).window(3, {.drop_remainder = true})), (std::vector<Ints>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(windows(range(7).window(3, {.shift = 1, .drop_remainder = true})),
            (std::vector<Ints>{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}, {4, 5, 6}}));
  EXPECT_EQ(windows(range(7).window(3, {.shift = 1, .stride = 2, .drop_remainder = true})),
            (std::vector<Ints>{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}}));
  EXPECT_EQ(windows(stream(10).window(2, {.shift = 4})), (std::vector<Ints>{{0, 1}, {4, 5}, {8, 9}}));
  EXPECT_EQ(range(7).window(3, {.shift = 1, .drop_remainder = true}).cardinality(), 5);
  EXPECT_EQ(ints(range(6).window(3).flat_map([](Dataset<Tensor> w) { return w.batch(3); })), iota(6));
  for (auto [a, b] : zip(range(4), range(10, 14)).window(4)) {
    EXPECT_EQ(ints(a), iota(4));
    EXPECT_EQ(ints(b), iota(4, 10));
  }
}

TEST(GroupByWindow, CollectsByKey) {
  const auto grouped = range(10).group_by_window([](Tensor x) { return x % 2; },
                                                 [](int64_t, Dataset<Tensor> w) { return w.batch(5); }, 5);
  std::vector<Ints> all;
  for (const Tensor& t : grouped) all.push_back(ints(t));
  EXPECT_EQ(all, (std::vector<Ints>{{0, 2, 4, 6, 8}, {1, 3, 5, 7, 9}}));
  const auto small = range(7).group_by_window(
      [](Tensor x) { return x.item<int64_t>() % 3; },
      [](int64_t k, Dataset<Tensor> w) { return w.map([k](Tensor x) { return x + k * 100; }).batch(9); }, 2);
  all.clear();
  for (const Tensor& t : small) all.push_back(ints(t));
  EXPECT_EQ(all, (std::vector<Ints>{{0, 3}, {101, 104}, {202, 205}, {6}}));
}

TEST(Bucket, BatchesBySimilarLength) {
  const auto length = [](Tensor x) { return x.dim(0); };
  std::vector<Shape> shapes;
  for (const Tensor& t : growing(6).bucket_by_sequence_length(length, {3, 5}, {2, 2, 2})) shapes.push_back(t.shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 2}, {2, 4}, {2, 6}}));
  shapes.clear();
  for (const Tensor& t : growing(4).bucket_by_sequence_length(length, {3, 9}, {2, 2, 2}, {}, true))
    shapes.push_back(t.shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 2}, {2, 8}}));
  expect_error([&] { growing(4).bucket_by_sequence_length(length, {3}, {2}); }, Code::invalid_argument,
               "2 batch sizes");
}

TEST(Scan, CarriesState) {
  const auto sums = range(1, 6).scan(Tensor(int64_t{0}), [](Tensor s, Tensor x) { return std::tuple{s + x, s + x}; });
  EXPECT_EQ(ints(sums), (Ints{1, 3, 6, 10, 15}));
}

TEST(Enumerate, Numbers) {
  int64_t k = 5;
  for (auto [i, x] : range(10, 13).enumerate(5)) {
    EXPECT_EQ(i.item<int64_t>(), k);
    EXPECT_EQ(x.item<int64_t>(), 5 + k++);
  }
  EXPECT_EQ(k, 8);
}

TEST(Unique, KeepsTheFirst) {
  EXPECT_EQ(ints(from_tensor_slices({1, 37, 2, 37, 2, 1})), (Ints{1, 37, 2, 37, 2, 1}));
  EXPECT_EQ(ints(from_tensor_slices({1, 37, 2, 37, 2, 1}).unique()), (Ints{1, 37, 2}));
}

TEST(IgnoreErrors, CountsThem) {
  const auto count = std::make_shared<std::atomic<int64_t>>(0);
  std::string last;
  for (const int parallel : {0, 2}) {
    const auto d = range(6)
                       .map(
                           [](Tensor x) {
                             if (x.item<int64_t>() % 2 == 1) throw Error(Code::data_loss, "odd");
                             return x;
                           },
                           parallel)
                       .ignore_errors(count, [&](const std::exception& e) { last = e.what(); });
    EXPECT_EQ(ints(d), (Ints{0, 2, 4}));
    EXPECT_THAT(d.explain(), testing::HasSubstr("errors skipped: 3"));
  }
  EXPECT_EQ(*count, 6);
  EXPECT_THAT(last, ::testing::StartsWith("odd\n  in the callable of map, a stage made at "));
}

TEST(Choose, ByNumberAndAtRandom) {
  const std::vector<Dataset<Tensor>> all{range(0, 3), range(10, 13), range(20, 23)};
  EXPECT_EQ(ints(choose_from_datasets(all, range(3).repeat(3))), (Ints{0, 10, 20, 1, 11, 21, 2, 12, 22}));
  EXPECT_EQ(ints(choose_from_datasets(all, from_tensors(Tensor(int64_t{0})).repeat())), iota(3));
  auto bad = choose_from_datasets(all, range(3, 5)).make_iterator();
  expect_error([&] { bad.next(); }, Code::invalid_argument, "the choice is 3");
  const auto sampled = sample_from_datasets(all, {}, 1);
  Ints got = ints(sampled);
  EXPECT_EQ(got.size(), 9u);
  EXPECT_NE(got, ints(sampled));
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, (Ints{0, 1, 2, 10, 11, 12, 20, 21, 22}));
  const auto weighed =
      ints(sample_from_datasets<Tensor>({range(0, 1).repeat(), range(1, 2).repeat()}, {0.8, 0.2}, 5).take(2000));
  EXPECT_NEAR(std::accumulate(weighed.begin(), weighed.end(), int64_t{0}), 400, 60);
}

TEST(RejectionResample, MeetsTheShares) {
  const auto skewed = range(20000).map([](Tensor x) { return cast(x % 10 == int64_t{0}, int64); });
  for (const std::vector<double>& initial : {std::vector<double>{}, {0.9, 0.1}}) {
    int64_t ones = 0, total = 0;
    for (auto [c, x] : skewed.rejection_resample([](Tensor x) { return x; }, {0.5, 0.5}, initial, 3)) {
      EXPECT_EQ(c.item<int64_t>(), x.item<int64_t>());
      ones += c.item<int64_t>();
      ++total;
    }
    EXPECT_GT(total, 3000);
    EXPECT_NEAR(static_cast<double>(ones) / static_cast<double>(total), 0.5, 0.03);
  }
}

TEST(Split, PartsShareNothing) {
  for (const auto& d : {range(100), range(100).shuffle(100, 4), stream(100), stream(100).shuffle(30)}) {
    const auto parts = d.split({0.7, 0.2, 0.1}, 9);
    ASSERT_EQ(parts.size(), 3u);
    std::set<int64_t> seen[3];
    for (int pass = 0; pass < 3; ++pass) {
      for (size_t k = 0; k < 3; ++k) {
        for (const int64_t x : ints(parts[k].shuffle(50))) seen[k].insert(x);
      }
    }
    size_t total = 0;
    for (const auto& s : seen) total += s.size();
    EXPECT_EQ(total, 100u) << "an element is in two parts, or in none";
    EXPECT_NEAR(static_cast<double>(seen[0].size()), 70, d.cardinality() == 100 ? 0.1 : 15);
  }
  expect_error([] { range(3).split({0.9, 0.2}); }, Code::invalid_argument, "add up to 1.1");
}

TEST(Apply, AndOptions) {
  EXPECT_EQ(ints(range(4).apply([](const Dataset<Tensor>& d) { return d.take(2); })), iota(2));
  EXPECT_EQ(ints(range(4).with_options({.threads = 1, .byte_budget = 1 << 20})), iota(4));
}

TEST(Explain, ShowsEveryStage) {
  const auto d = range(2000)
                     .map([](Tensor x) { return x + int64_t{1}; }, AUTOTUNE)
                     .batch(10)
                     .filter([](Tensor) { return true; })
                     .prefetch(AUTOTUNE);
  EXPECT_EQ(d.explain(), "no pass was made yet\n");
  ints(d);
  const std::string text = d.explain();
  for (const char* word :
       {"Prefetch(AUTOTUNE)", "Filter", "Batch(10)", "ParallelMap", "Range", "<- bottleneck", "elements/s"}) {
    EXPECT_THAT(text, testing::HasSubstr(word));
  }
}

// fit adds stages of its own behind the dataset that the program holds.
TEST(Explain, ShowsPassesOverDatasetsMadeFromThis) {
  const auto mine = range(20).batch(10);
  ints(mine.prefetch(2));
  for (const char* word : {"Prefetch(2)", "Batch(10)", "Range"}) EXPECT_THAT(mine.explain(), testing::HasSubstr(word));
}

TEST(Budget, ShuffleAndCacheRefuseWhatDoesNotFit) {
  const auto big = stream(100).map([](Tensor) { return zeros({1000}); }).with_options({.byte_budget = 100000});
  auto shuffled = big.shuffle(100).make_iterator();
  expect_error([&] { shuffled.next(); }, Code::resource_exhausted, "buffer of 100 elements");
  auto cached = big.cache().make_iterator();
  expect_error(
      [&] {
        while (cached.next()) continue;
      },
      Code::resource_exhausted, "[cache]");
}

TEST(Budget, HoldsWithAGigabyteFlowingThrough) {
  constexpr int64_t kBudget = 24 << 20;
  host_memory::trim();
  host_memory::reset_peak();
  const int64_t before = host_memory::stats().in_use;
  int64_t bytes = 0;
  const auto d = stream(1024)
                     .map([](Tensor i) { return fill({1 << 20}, cast(i, uint8)); }, 3)
                     .shuffle(8)
                     .prefetch(1000)
                     .with_options({.byte_budget = kBudget});
  for (const Tensor& t : d) bytes += static_cast<int64_t>(t.num_bytes());
  EXPECT_EQ(bytes, int64_t{1} << 30);
  // Besides the budget there is what is being computed or handed over: an element for each thread and for the consumer.
  EXPECT_LE(host_memory::stats().peak - before, kBudget + 6 * (1 << 20));
}

TEST(Interleave, ErrorsHaveTheSamePlaceWithParallelCalls) {
  const auto told = [](int parallel) {
    const auto part = [](const Tensor& i) {
      const int64_t k = i.item<int64_t>();
      if (k == 2) throw Error(Code::data_loss, "two");
      return range(k * 10, k * 10 + (k == 0 ? 1 : 3));
    };
    auto it = range(6)
                  .interleave(part, {.cycle_length = 2, .block_length = 1, .num_parallel_calls = parallel})
                  .make_iterator();
    std::vector<int64_t> all;
    for (int n = 0; n < 40; ++n) {
      try {
        const auto element = it.next();
        if (!element) break;
        all.push_back(element->item<int64_t>());
      } catch (const Error&) {
        all.push_back(-1);
      }
    }
    return all;
  };
  EXPECT_THAT(told(0), testing::Contains(-1));
  EXPECT_EQ(told(2), told(0));
}

}  // namespace
}  // namespace runnel::data
