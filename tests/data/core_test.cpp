#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "tests/data/helpers.h"

namespace runnel::data {
namespace {

TEST(Sources, SlicesOfOneTensor) {
  std::vector<std::string> seen;
  for (const Tensor& t : from_tensor_slices({{1, 2}, {3, 4}, {5, 6}})) {
    EXPECT_EQ(t.shape(), Shape({2}));
    seen.push_back(t.str());
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(ints(from_tensor_slices({{1, 2}, {3, 4}, {5, 6}})), (Ints{1, 2, 3, 4, 5, 6}));
}

TEST(Sources, SlicesOfAPairBind) {
  const auto d = from_tensor_slices(Tensor{2013, 2014, 2015}, Tensor{12000, 14000, 15000});
  static_assert(std::same_as<decltype(d), const Dataset<Tensor, Tensor>>);
  Ints xs, ys;
  for (auto [x, y] : d) {
    xs.push_back(x.item<int32_t>());
    ys.push_back(y.item<int32_t>());
  }
  EXPECT_THAT(xs, ElementsAre(2013, 2014, 2015));
  EXPECT_THAT(ys, ElementsAre(12000, 14000, 15000));
  EXPECT_EQ(d.cardinality(), 3);
  EXPECT_EQ(str(d.element_spec()), "(int32[], int32[])");
}

TEST(Sources, SlicesOfAMap) {
  const std::map<std::string, Tensor> columns{{"a", Tensor{1, 2}}, {"b", Tensor{{1.f, 2.f}, {3.f, 4.f}}}};
  int64_t n = 0;
  for (auto row : from_tensor_slices(columns)) {
    EXPECT_EQ(row.at("a").item<int32_t>(), ++n);
    EXPECT_EQ(row.at("b").shape(), Shape({2}));
  }
  EXPECT_EQ(n, 2);
}

TEST(Sources, FirstDimensionsThatDifferAreNamed) {
  expect_error(
      [] {
        from_tensor_slices(Tensor{1, 2, 3}, Tensor{1, 2});
      },
      Code::invalid_argument, "first dimensions differ: component [0] has 3 rows ([3]), component [1] 2 ([2])");
  expect_error(
      [] {
        from_tensor_slices(std::map<std::string, Tensor>{{"x", Tensor{1}}, {"y", Tensor{1, 2}}});
      },
      Code::invalid_argument, "component ['y'] 2");
  expect_error([] { from_tensor_slices(Tensor(1)); }, Code::invalid_argument, "scalar");
}

TEST(Sources, RangeCounterTensorsRandom) {
  EXPECT_EQ(ints(range(5)), iota(5));
  EXPECT_EQ(ints(range(2, 10, 3)), (Ints{2, 5, 8}));
  EXPECT_EQ(ints(range(5, 0, -2)), (Ints{5, 3, 1}));
  EXPECT_EQ(range(5, 0).cardinality(), 0);
  EXPECT_EQ(ints(counter(10, 5).take(3)), (Ints{10, 15, 20}));
  EXPECT_EQ(counter().cardinality(), INFINITE_CARDINALITY);
  EXPECT_EQ(ints(from_tensors(Tensor{1, 2, 3})), (Ints{1, 2, 3}));
  const Ints a = ints(random(7).take(5)), b = ints(random(7).take(5)), c = ints(random(8).take(5));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  const auto once = random(7, false).take(3);
  EXPECT_EQ(ints(once), ints(once));
  const auto anew = random(7).take(3);
  EXPECT_NE(ints(anew), ints(anew));
}

TEST(Sources, Generator) {
  EXPECT_EQ(ints(stream(4)), iota(4));
  EXPECT_EQ(ints(stream(4).repeat(2)), (Ints{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(stream(4).cardinality(), UNKNOWN_CARDINALITY);
  const auto pairs = from_generator([] {
    return [i = 0]() mutable -> std::optional<std::tuple<Tensor, Tensor>> {
      if (i == 2) return std::nullopt;
      ++i;
      return std::tuple{Tensor(i), Tensor(i * i)};
    };
  });
  int n = 0;
  for (auto [a, b] : pairs) {
    ++n;
    EXPECT_EQ(b.item<int32_t>(), a.item<int32_t>() * n);
  }
  EXPECT_EQ(n, 2);
}

TEST(Map, ChangesTypesAndCounts) {
  const auto d = range(4).map([](Tensor x) { return std::tuple{x, x * x}; });
  static_assert(std::same_as<decltype(d), const Dataset<Tensor, Tensor>>);
  Ints squares;
  for (auto [x, y] : d) squares.push_back(y.item<int64_t>());
  EXPECT_EQ(squares, (Ints{0, 1, 4, 9}));
  EXPECT_EQ(ints(d.map([](Tensor a, Tensor b) { return a + b; })), (Ints{0, 2, 6, 12}));
  EXPECT_EQ(ints(d.map([](const std::tuple<Tensor, Tensor>& e) { return std::get<1>(e); })), (Ints{0, 1, 4, 9}));
  const auto named = range(2).map([](Tensor x) { return std::map<std::string, Tensor>{{"x", x}, {"y", x + 1}}; });
  for (auto e : named) EXPECT_EQ(e.at("y").item<int64_t>(), e.at("x").item<int64_t>() + 1);
  EXPECT_EQ(str(named.element_spec()), "{'x': int64[], 'y': int64[]}");
  EXPECT_EQ(str(range(3).batch(2, true).map([](Tensor x) { return cast(x, float32); }).element_spec()), "float32[2]");
}

TEST(Map, ThrowsInPlaceAndGoesOn) {
  for (const int parallel : {0, 1, 3, AUTOTUNE}) {
    for (const bool indexed : {true, false}) {
      const auto d = (indexed ? range(6) : stream(6))
                         .map(
                             [](Tensor x) {
                               if (x.item<int64_t>() == 2) throw Error(Code::data_loss, "two");
                               return x;
                             },
                             parallel);
      auto it = d.make_iterator();
      EXPECT_EQ(it.next()->item<int64_t>(), 0);
      EXPECT_EQ(it.next()->item<int64_t>(), 1);
      expect_error([&] { it.next(); }, Code::data_loss, "two");
      EXPECT_EQ(rest(it), (Ints{3, 4, 5})) << parallel << indexed;
    }
  }
}

TEST(Map, OtherExceptionsCrossThreadsToo) {
  const auto d = stream(3).map([](Tensor) -> Tensor { throw std::runtime_error("mine"); }, 2).prefetch(2);
  auto it = d.make_iterator();
  EXPECT_THROW(it.next(), std::runtime_error);
}

TEST(Map, RunsUnrecordedAndSerial) {
  Variable w(2.0f);
  GradientTape tape(GradientTapeOptions{.persistent = false});
  const Tensor y = w * 3.0f;
  auto it = range(3).map([&](Tensor x) { return cast(x, float32) * w; }).make_iterator();
  const Tensor z = *it.next() + y;
  EXPECT_EQ(tape.gradient(z, w).dense().item<float>(), 3.0f);
}

TEST(Map, RandomOpsAreKeyedByElement) {
  random::set_seed(5);
  const auto draw = [](Tensor x) { return x * 0 + random::uniform({}, 0, 1000000, DType::int64); };
  const auto one = range(50).map(draw);
  const Ints first = ints(one), second = ints(one);
  EXPECT_NE(first, second) << "another pass draws other numbers";
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 50u);
  for (const int parallel : {1, 4, AUTOTUNE}) {
    random::set_seed(5);
    const auto many = range(50).map(draw, parallel);
    EXPECT_EQ(ints(many), first);
    EXPECT_EQ(ints(many), second);
    random::set_seed(5);
    const auto streamed = stream(50);
    random::set_seed(5);
    EXPECT_EQ(ints(streamed.map(draw, parallel)), first);
  }
}

TEST(Batch, StacksWithARemainder) {
  std::vector<Shape> shapes;
  for (const Tensor& t : range(7).batch(3)) shapes.push_back(t.shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{3}, {3}, {1}}));
  EXPECT_EQ(ints(range(7).batch(3, true)), iota(6));
  EXPECT_EQ(range(7).batch(3).cardinality(), 3);
  EXPECT_EQ(range(7).batch(3, true).cardinality(), 2);
  EXPECT_EQ(str(range(7).batch(3).element_spec()), "int64[?]");
  EXPECT_EQ(str(range(7).batch(3, true).batch(2).element_spec()), "int64[2,3]");
  for (const int parallel : {0, 2, AUTOTUNE}) {
    EXPECT_EQ(ints(stream(7).batch(3, {.num_parallel_calls = parallel})), iota(7));
    EXPECT_EQ(ints(stream(7).batch(3, {.drop_remainder = true, .num_parallel_calls = parallel})), iota(6));
  }
  const auto words = from_tensor_slices(Tensor{"a", "bb", "ccc"}).batch(2);
  std::vector<std::string> all;
  for (const Tensor& t : words) {
    for (const std::string& s : t.to_vector<std::string>()) all.push_back(s);
  }
  EXPECT_THAT(all, ElementsAre("a", "bb", "ccc"));
}

TEST(Batch, SuccessiveRowsAreShared) {
  const Tensor whole = Tensor::of<float>(std::vector<float>(600, 1.f), {60, 10});
  for (const Tensor& t : from_tensor_slices(whole).batch(20)) EXPECT_EQ(t.impl()->buffer, whole.impl()->buffer);
}

TEST(Batch, ShapesThatDifferAreNamed) {
  const auto d = range(3).map([](Tensor x) { return zeros({x.item<int64_t>()}); }).batch(2);
  auto it = d.make_iterator();
  expect_error([&] { it.next(); }, Code::invalid_argument,
               "element 1 of the batch is float32[1], the ones before it are float32[0]: padded_batch");
}

TEST(Batch, DeliversWhatCameBeforeAnError) {
  for (const int parallel : {0, 2}) {
    const auto d = stream(5)
                       .map([](Tensor x) {
                         if (x.item<int64_t>() == 3) throw Error(Code::data_loss, "three");
                         return x;
                       })
                       .batch(2, {.num_parallel_calls = parallel});
    auto it = d.make_iterator();
    EXPECT_EQ(ints(*it.next()), (Ints{0, 1}));
    EXPECT_EQ(ints(*it.next()), (Ints{2}));
    expect_error([&] { it.next(); }, Code::data_loss, "three");
    EXPECT_EQ(ints(*it.next()), (Ints{4}));
    EXPECT_FALSE(it.next());
  }
}

TEST(Batch, DeliversWhatIsAroundAnErrorOverASourceInMemory) {
  const auto failing = [](Tensor x) {
    if (x.item<int64_t>() % 5 == 2) throw Error(Code::data_loss, "two");
    return x;
  };
  const auto whole = [](Iterator<Tensor>& it) {
    std::vector<Ints> all;
    while (true) {
      try {
        const auto t = it.next();
        if (!t) return all;
        all.push_back(ints(*t));
      } catch (const Error& e) {
        EXPECT_THAT(std::string(e.what()), ::testing::HasSubstr("two"));
        all.push_back({-1});
      }
    }
  };
  const std::vector<Ints> expected = {{0, 1}, {-1}, {3}, {4, 5, 6}, {-1}, {8, 9, 10, 11}};
  for (const int calls : {0, 2}) {
    for (const int64_t ahead : {0, 2}) {
      const auto d = range(12).map(failing, calls).batch(4).prefetch(ahead);
      auto it = d.make_iterator();
      EXPECT_EQ(whole(it), expected) << calls << " " << ahead;
      for (size_t stop = 0; stop <= expected.size(); ++stop) {
        auto first = d.make_iterator(), resumed = d.make_iterator();
        for (size_t k = 0; k < stop; ++k) {
          try {
            first.next();
          } catch (const Error&) {
          }
        }
        resumed.restore(first.save());
        EXPECT_EQ(whole(resumed), (std::vector<Ints>(expected.begin() + static_cast<ptrdiff_t>(stop), expected.end())))
            << calls << " " << ahead << " after " << stop;
      }
      auto full = range(12).map(failing, calls).batch(4, true).prefetch(ahead).make_iterator();
      EXPECT_EQ(whole(full), (std::vector<Ints>{{-1}, {-1}, {8, 9, 10, 11}}));
    }
  }
}

TEST(Shuffle, IsAPermutation) {
  for (const int64_t buffer : {1, 2, 7, 50, 100, 1000}) {
    for (const bool indexed : {true, false}) {
      const auto d = (indexed ? range(100) : stream(100)).shuffle(buffer, 3);
      Ints order = ints(d);
      if (buffer == 1) {
        EXPECT_EQ(order, iota(100)) << "a buffer of one does not shuffle";
      } else {
        EXPECT_NE(order, iota(100));
        for (size_t i = 0; i < order.size(); ++i) {
          EXPECT_LT(order[i], static_cast<int64_t>(i) + buffer) << "an element came before the buffer could hold it";
        }
      }
      EXPECT_EQ(ints(range(100).shuffle(buffer, 3)), order) << "the index changes nothing but the speed";
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, iota(100));
    }
  }
}

TEST(Shuffle, SeedsAndPasses) {
  const auto anew = range(50).shuffle(50, 3);
  const Ints first = ints(anew), second = ints(anew);
  EXPECT_NE(first, second);
  const auto again = range(50).shuffle(50, 3);
  EXPECT_EQ(ints(again), first);
  EXPECT_EQ(ints(again), second);
  const auto fixed = range(50).shuffle(50, {.seed = 3, .reshuffle_each_iteration = false});
  EXPECT_EQ(ints(fixed), ints(fixed));
  const Ints two = ints(range(50).shuffle(50, 3).repeat(2));
  EXPECT_EQ(Ints(two.begin(), two.begin() + 50), first);
  EXPECT_NE(Ints(two.begin(), two.begin() + 50), Ints(two.begin() + 50, two.end()));
  random::set_seed(1);
  const Ints a = ints(range(50).shuffle(50));
  random::set_seed(1);
  EXPECT_EQ(ints(range(50).shuffle(50)), a);
  EXPECT_NE(ints(range(50).shuffle(50)), a);
}

TEST(Shuffle, IsUniform) {
  // Each number at each place about equally often.
  std::map<std::pair<int64_t, size_t>, int> count;
  const auto d = range(4).shuffle(4, 11);
  for (int k = 0; k < 4000; ++k) {
    const Ints order = ints(d);
    for (size_t i = 0; i < 4; ++i) ++count[{order[i], i}];
  }
  for (const auto& [place, n] : count) EXPECT_NEAR(n, 1000, 150);
}

TEST(Sequence, RepeatTakeSkipShardZipConcatenate) {
  for (const bool indexed : {true, false}) {
    const auto d = indexed ? range(5) : stream(5);
    EXPECT_EQ(ints(d.repeat(2)), (Ints{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
    EXPECT_EQ(ints(d.repeat().take(7)), (Ints{0, 1, 2, 3, 4, 0, 1}));
    EXPECT_EQ(ints(d.repeat(0)), Ints{});
    EXPECT_EQ(ints(d.take(0).repeat()), Ints{});
    EXPECT_EQ(ints(d.take(-1)), iota(5));
    EXPECT_EQ(ints(d.skip(3)), (Ints{3, 4}));
    EXPECT_EQ(ints(d.skip(9)), Ints{});
    EXPECT_EQ(ints(d.skip(-1)), Ints{});
    EXPECT_EQ(ints(d.shard(2, 0)), (Ints{0, 2, 4}));
    EXPECT_EQ(ints(d.shard(2, 1)), (Ints{1, 3}));
    EXPECT_EQ(ints(d.concatenate(range(7, 9))), (Ints{0, 1, 2, 3, 4, 7, 8}));
    EXPECT_EQ(ints(d.repeat(2).batch(3)), (Ints{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
    EXPECT_EQ(ints(d.concatenate(range(7, 9)).batch(2)), (Ints{0, 1, 2, 3, 4, 7, 8}));
    Ints sums;
    for (auto [a, b] : zip(d, range(10, 13))) sums.push_back(a.item<int64_t>() + b.item<int64_t>());
    EXPECT_EQ(sums, (Ints{10, 12, 14}));
  }
  EXPECT_EQ(range(5).repeat(3).cardinality(), 15);
  EXPECT_EQ(range(5).repeat().cardinality(), INFINITE_CARDINALITY);
  EXPECT_EQ(zip(range(5), counter()).cardinality(), 5);
  EXPECT_EQ(range(5).skip(2).cardinality(), 3);
  EXPECT_EQ(range(5).shard(2, 1).cardinality(), 2);
  expect_error([] { range(3).shard(2, 2); }, Code::invalid_argument, "shard 2 of 2");
}

TEST(Prefetch, GivesTheSame) {
  for (const int64_t depth : {int64_t{1}, int64_t{3}, int64_t{100}, int64_t{AUTOTUNE}}) {
    EXPECT_EQ(ints(range(500).prefetch(depth)), iota(500));
    EXPECT_EQ(ints(stream(500).prefetch(depth)), iota(500));
    EXPECT_EQ(ints(stream(500).map([](Tensor x) { return x; }, 3).prefetch(depth)), iota(500));
  }
}

TEST(Prefetch, WorksAheadOnAnotherThread) {
  std::atomic<int> made{0};
  const auto d = stream(10)
                     .map([&](Tensor x) {
                       ++made;
                       return x;
                     })
                     .prefetch(4);
  auto it = d.make_iterator();
  it.next();
  for (int k = 0; k < 1000 && made < 4; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(made, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(made, 6) << "no further ahead than asked for";
}

TEST(Parallel, CallsAtOnceAndKeepsOrder) {
  std::atomic<int> now{0}, most{0};
  const auto slow = [&](Tensor x) {
    const int n = ++now;
    int seen = most.load();
    while (n > seen && !most.compare_exchange_weak(seen, n)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(x.item<int64_t>() % 3));
    --now;
    return x;
  };
  EXPECT_EQ(ints(stream(40).map(slow, 4)), iota(40));
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
  most = 0;
  EXPECT_EQ(ints(range(40).map(slow, 3)), iota(40));
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 3);
  most = 0;
  EXPECT_EQ(ints(range(20).map(slow).prefetch(8)), iota(20));
  EXPECT_EQ(most, 1) << "a callable for which no parallel calls were asked for is called by one thread at a time";
}

TEST(Parallel, WithoutOrderGivesTheSameElements) {
  const auto uneven = [](Tensor x) {
    if (x.item<int64_t>() % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return x;
  };
  Ints got = ints(stream(60).map(uneven, {.num_parallel_calls = 3, .deterministic = false}));
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, iota(60));
  got = ints(range(60).map(uneven, 3).with_options({.deterministic = false}));
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, iota(60));
}

TEST(Iterators, SeveralAtOnce) {
  const auto d = range(4).map([](Tensor x) { return x; }, 2).prefetch(2);
  auto a = d.make_iterator(), b = d.make_iterator();
  EXPECT_EQ(a.next()->item<int64_t>(), 0);
  EXPECT_EQ(a.next()->item<int64_t>(), 1);
  EXPECT_EQ(b.next()->item<int64_t>(), 0);
  EXPECT_EQ(rest(a), (Ints{2, 3}));
  EXPECT_EQ(rest(b), (Ints{1, 2, 3}));
  EXPECT_FALSE(a.next());
}

TEST(AnyDatasets, GoThereAndBack) {
  const AnyDataset any = from_tensor_slices(Tensor{1, 2, 3}, Tensor{4, 5, 6});
  Ints sums;
  for (auto [a, b] : any.as<Tensor, Tensor>()) sums.push_back(a.item<int32_t>() + b.item<int32_t>());
  EXPECT_THAT(sums, ElementsAre(5, 7, 9));
  expect_error([&] { any.as<Tensor>(); }, Code::invalid_argument, "(int32[], int32[]), not ?");
  auto it = any.map([](const Nest& n) { return Nest(n[0].leaf() + n[1].leaf()); }).batch(2).make_iterator();
  EXPECT_EQ(ints(it.next()->leaf()), (Ints{5, 7}));
}

TEST(Functions, ElementwiseOnesRunOnWholeBatches) {
  const Tensor images = cast(random::uniform({20, 4, 4}, 0, 256, DType::int32), uint8);
  const auto scale = function([](Tensor x, Tensor y) { return std::tuple{cast(x, float32) / 255, y}; });
  const auto plain = [](Tensor x, Tensor y) { return std::tuple{cast(x, float32) / 255, y}; };
  const auto source = from_tensor_slices(images, Tensor::of<int64_t>(iota(20))).shuffle(20, 1);
  for (const int parallel : {0, 2}) {
    const auto a = source.map(scale, parallel).batch(6);
    const auto b = source.map(plain, parallel).batch(6);
    auto ia = a.make_iterator();
    auto ib = b.make_iterator();
    while (auto x = ia.next()) {
      auto y = ib.next();
      ASSERT_TRUE(y);
      EXPECT_EQ(std::get<0>(*x).to_vector<float>(), std::get<0>(*y).to_vector<float>());
      EXPECT_EQ(ints(std::get<1>(*x)), ints(std::get<1>(*y)));
    }
    EXPECT_FALSE(ib.next());
  }
  // One trace of an element to see what it does, one of a batch of 6, one of the last 2.
  EXPECT_EQ(scale.num_traces(), 3);
}

TEST(Functions, OthersRunElementByElement) {
  const Tensor x = reshape(cast(Tensor::of<int64_t>(iota(24)), float32), {6, 4});
  const auto normed = function([](Tensor v) { return v / reduce_sum(v + 1); });
  const auto by_scalar = function([](Tensor v, Tensor s) { return v * s; });
  int i = 0;
  for (const Tensor& batch : from_tensor_slices(x).map(normed).batch(3)) {
    for (int r = 0; r < 3; ++r, ++i) EXPECT_EQ(batch[r].to_vector<float>(), normed(x[i]).to_vector<float>());
  }
  for (const Tensor& batch :
       from_tensor_slices(x, cast(Tensor::of<int64_t>(iota(6)), float32)).map(by_scalar).batch(6)) {
    EXPECT_EQ(batch[2].to_vector<float>(), (x[2] * 2.f).to_vector<float>());
  }
}

TEST(Reduce, FoldsElements) {
  EXPECT_EQ(range(5).reduce(Tensor(int64_t{0}), [](Tensor s, Tensor x) { return s + x; }).item<int64_t>(), 10);
  EXPECT_EQ(zip(range(5), range(5)).reduce(0, [](int n, Tensor, Tensor) { return n + 1; }), 5);
}

}  // namespace
}  // namespace runnel::data
