// Iterators that are dropped at any moment: nothing hangs, nothing is touched after it is gone, no thread and no memory
// stays behind. The sanitizers of threads and of memory watch.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/data/helpers.h"
#include "tests/support/temp_dir.h"

namespace runnel::data {
namespace {

constexpr int kIterators = 1000;
constexpr int kPipelines = 100;

// Threads of this process.
int threads() {
  int n = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}

// A joined thread leaves the list a moment after the join; so may one of the test before, which is why there may be
// fewer than wanted.
int threads_down_to(int wanted) {
  for (int k = 0; k < 2000 && threads() > wanted; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads();
}

// Something that every element of a pipeline goes through holds one of these.
struct Token {
  static inline std::atomic<int> alive{0};
  Token() { ++alive; }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  ~Token() { --alive; }
};

class Pipelines {
 public:
  explicit Pipelines(uint32_t seed) : gen_(seed) {}
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(gen_); }

  Dataset<Tensor> make() {
    text_.clear();
    Dataset<Tensor> d = source();
    const int stages = pick(2, 6);
    for (int k = 0; k < stages; ++k) d = stage(d);
    return d;
  }
  const std::string& text() const { return text_; }

 private:
  int calls() {
    const int wish[] = {1, 2, 3, AUTOTUNE};
    return wish[pick(0, 3)];
  }
  Dataset<Tensor> source() {
    switch (pick(0, 3)) {
      case 0: text_ = "range "; return range(100000);
      case 1: text_ = "slices "; return from_tensor_slices(Tensor::of<int64_t>(iota(5000)));
      case 2: text_ = "lines "; return lines();
      default: text_ = "stream "; return stream(100000);
    }
  }
  Dataset<Tensor> lines() {
    if (!dir_) {
      dir_.emplace();
      for (int f = 0; f < 4; ++f) {
        std::string text;
        for (int k = 0; k < 50 * f; ++k) text += std::to_string(k) + "\n";
        paths_.push_back(join_path(dir_->path(), std::to_string(f)));
        Env::posix().write_file(paths_.back(), as_bytes(text));
      }
    }
    return TextLineDataset(paths_, {.num_parallel_reads = calls()}).repeat().map([](Tensor line) {
      return Tensor(static_cast<int64_t>(std::stoll(line.item<std::string>())));
    });
  }
  Dataset<Tensor> stage(const Dataset<Tensor>& d) {
    const int p = calls(), a = pick(1, 6);
    const auto token = std::make_shared<Token>();
    switch (pick(0, 12)) {
      case 0:
      case 1: text_ += "map "; return d.map([token](Tensor x) { return x + int64_t{1}; }, p);
      case 2:
        text_ += "map_unordered ";
        return d.map([token](Tensor x) { return x; }, {.num_parallel_calls = p, .deterministic = false});
      case 3:
        text_ += "map_slow ";
        return d.map(
            [token](Tensor x) {
              std::this_thread::sleep_for(std::chrono::microseconds(50));
              return x;
            },
            p);
      case 4: text_ += "shuffle "; return d.shuffle(a * 10);
      case 5: text_ += "batch_unbatch "; return d.batch(a, {.num_parallel_calls = p}).unbatch();
      case 6:
      case 7: text_ += "prefetch "; return d.prefetch(a == 6 ? AUTOTUNE : a);
      case 8:
        text_ += "interleave ";
        return d.interleave([a, token](Tensor x) { return from_tensors(x).repeat(a).prefetch(1); },
                            {.cycle_length = a, .num_parallel_calls = p, .deterministic = a % 2 == 0});
      case 9: text_ += "cache "; return d.take(20 * a).cache().repeat();
      case 10: text_ += "filter "; return d.filter([token](Tensor x) { return x % int64_t{2} == int64_t{0}; });
      case 11:
        text_ += "window ";
        return d.window(a).flat_map([token](Dataset<Tensor> w) { return w.map([token](Tensor x) { return x; }, 2); });
      default:
        text_ += "errors ";
        return d
            .map(
                [token](Tensor x) {
                  if (x.item<int64_t>() % 5 == 3) throw Error(Code::data_loss, "every fifth");
                  return x;
                },
                p)
            .ignore_errors();
    }
  }

  std::mt19937 gen_;
  std::string text_;
  std::optional<test::TempDir> dir_;
  std::vector<std::string> paths_;
};

TEST(Destroy, AtRandomMomentsAThousandTimes) {
  for (const Tensor& t : range(4).map([](Tensor x) { return x; }, 2)) (void)t;  // whatever stays for good is there now
  const int before = threads();
  {
    Pipelines pipelines(7);
    for (int p = 0; p < kPipelines; ++p) {
      const auto d = pipelines.make();
      SCOPED_TRACE(pipelines.text());
      for (int k = 0; k < kIterators / kPipelines; ++k) {
        auto it = d.make_iterator();
        const int n = pipelines.pick(0, 4);
        for (int i = 0; i < n; ++i) it.next();
        if (k % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pipelines.pick(0, 300)));
        if (k % 5 == 0) it.save();
      }
    }
  }
  EXPECT_LE(threads_down_to(before), before);
  EXPECT_EQ(Token::alive, 0);
}

// One element, and then work that has no end in sight: destroying does not wait for it.
TEST(Destroy, WhileAStageLooksForAnElementInVain) {
  const int before = threads();
  const std::vector<Dataset<Tensor>> all = {
      stream(1).concatenate(stream(100000000).filter([](Tensor x) { return x < int64_t{0}; })).prefetch(1),
      stream(1)
          .concatenate(stream(100000000)
                           .map([](Tensor) -> Tensor { throw Error(Code::data_loss, "always"); }, 2)
                           .ignore_errors())
          .prefetch(2),
      stream(1).concatenate(stream(100000000).skip(99999999)).prefetch(1).shuffle(1),
  };
  for (int k = 0; k < 60; ++k) {
    auto it = all[static_cast<size_t>(k) % all.size()].make_iterator();
    if (k % 2 == 0) it.next();
    if (k % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(k * 10));
  }
  EXPECT_LE(threads_down_to(before), before);
}

// Iterators of one dataset share its description, its caches and nothing else.
TEST(Destroy, WhileAnotherIteratorOfTheDatasetIsInNext) {
  const int before = threads();
  {
    Pipelines pipelines(11);
    for (int p = 0; p < 20; ++p) {
      const auto d = pipelines.make();
      SCOPED_TRACE(pipelines.text());
      std::atomic<bool> enough{false};
      std::atomic<int> taken{0};
      std::thread other([&] {
        auto it = d.make_iterator();
        while (!enough && it.next()) ++taken;
        ++taken;
      });
      for (int k = 0; k < 10; ++k) {
        auto it = d.make_iterator();
        const int n = pipelines.pick(0, 3);
        for (int i = 0; i < n; ++i) it.next();
        std::this_thread::sleep_for(std::chrono::microseconds(pipelines.pick(0, 100)));
      }
      while (taken == 0) std::this_thread::yield();
      enough = true;
      other.join();
    }
  }
  EXPECT_LE(threads_down_to(before), before);
  EXPECT_EQ(Token::alive, 0);
}

}  // namespace
}  // namespace runnel::data
