// Stages that choose the number of their threads: none where handing elements over would cost more than it saves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <thread>

#include "runnel/runnel.h"
#include "tests/data/helpers.h"
#include "tests/support/resident.h"

namespace runnel::data {
namespace {

// What explain() says of the threads of the stage whose line begins with this.
std::string threads_of(const std::string& text, const std::string& stage) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos || line.compare(at, stage.size(), stage) != 0) continue;
    std::istringstream words(line.substr(at + stage.size()));
    std::string word;
    // elements, elements/s, own time and its unit, busy, threads
    for (int k = 0; k < 6 && words >> word; ++k) {
    }
    return word;
  }
  return "no stage " + stage;
}

std::vector<std::string> record_files(int files, int records) {
  const std::string dir = Env::posix().create_temp_dir();
  std::vector<std::string> paths;
  for (int f = 0; f < files; ++f) {
    paths.push_back(join_path(dir, "records" + std::to_string(f)));
    io::TFRecordWriter writer(paths.back());
    for (int i = 0; i < records; ++i) writer.write("record " + std::to_string(i) + " of file " + std::to_string(f));
    writer.close();
  }
  return paths;
}

template <class D>
std::vector<std::string> texts(const D& dataset) {
  std::vector<std::string> all;
  for (const Tensor& t : dataset) all.push_back(t.template item<std::string>());
  return all;
}

TEST(Autotune, ReadingRecordsStaysWithTheConsumer) {
  const std::vector<std::string> paths = record_files(4, 5000);
  const auto d = TFRecordDataset(paths, {.num_parallel_reads = AUTOTUNE}).prefetch(AUTOTUNE);
  const std::vector<std::string> got = texts(d);
  EXPECT_EQ(got, texts(TFRecordDataset(paths, {.num_parallel_reads = 2})));
  if (test::kSanitized) return;  // a record takes long
  // On a busy machine a pass may look as if threads paid.
  const auto alone = [&] {
    const std::string text = d.explain();
    return threads_of(text, "Prefetch(AUTOTUNE)") == "-" && threads_of(text, "Reader") == "-";
  };
  for (int pass = 0; pass < 4 && !alone(); ++pass) texts(d);
  EXPECT_TRUE(alone()) << d.explain();
}

// Elements of 50 microseconds and a consumer that takes as long: a thread saves half the time.
TEST(Autotune, WhatOverlapsGetsAThread) {
  const auto spin = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  const auto d = range(300)
                     .map([=](Tensor x) {
                       spin();
                       return x;
                     })
                     .take(200)
                     .prefetch(AUTOTUNE);
  int64_t n = 0;
  for (const Tensor& x : d) {
    spin();
    EXPECT_EQ(x.item<int64_t>(), n++);
  }
  EXPECT_EQ(n, 200);
  EXPECT_EQ(threads_of(d.explain(), "Prefetch(AUTOTUNE)"), "1*") << d.explain();
}

// While it lives the system gives no threads: their stacks would be larger than the address space.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_t huge;
    pthread_getattr_default_np(&before_);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(Autotune, WithoutThreadsTheConsumerGoesOnAlone) {
  const auto spin = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  const auto slow = [=](Tensor x) {
    spin();
    return x;
  };
  const auto in_turn = [=](Tensor first) {
    return range(50).map([=](Tensor x) { return slow(x + first * int64_t{50}); });
  };
  const auto pulled = stream(100).map(slow).prefetch(AUTOTUNE);
  const auto interleaved = range(2).interleave(in_turn, {.cycle_length = 1, .num_parallel_calls = AUTOTUNE});
  const auto expect_all = [&](auto iterator) {
    int64_t n = 0;
    std::optional<NoMoreThreads> limit;  // from the second element on
    while (const auto x = iterator.next()) {
      if (!limit) limit.emplace();
      EXPECT_EQ(x->template item<int64_t>(), n++);
      spin();
    }
    EXPECT_EQ(n, 100);
  };
  expect_all(pulled.make_iterator());
  expect_all(interleaved.make_iterator());
}

TEST(Autotune, SlowReadersAllWork) {
  const auto d = range(4).interleave(
      [](Tensor file) {
        return range(6).map([file](Tensor x) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return x + file * int64_t{100};
        });
      },
      {.cycle_length = 4, .num_parallel_calls = AUTOTUNE});
  const Ints all = ints(d);
  ASSERT_EQ(all.size(), 24U);
  EXPECT_THAT(Ints(all.begin(), all.begin() + 5), ElementsAre(0, 100, 200, 300, 1));
  EXPECT_EQ(threads_of(d.explain(), "Reader"), "1*") << d.explain();
}

// Where the elements turn slow in the middle, and where the state is saved, nothing is lost or comes twice.
TEST(Autotune, GoesOnWithAThreadWhereElementsTurnSlow) {
  const auto d = range(3000)
                     .map([](Tensor x) {
                       if (x.item<int64_t>() % 1000 == 999) std::this_thread::sleep_for(std::chrono::milliseconds(3));
                       return x;
                     })
                     .filter([](Tensor) { return true; })
                     .prefetch(AUTOTUNE);
  for (const int64_t stop : {int64_t{10}, int64_t{700}, int64_t{1500}}) {
    auto it = d.make_iterator();
    for (int64_t i = 0; i < stop; ++i) ASSERT_EQ(it.next()->template item<int64_t>(), i);
    const std::string state = it.save();
    auto again = d.make_iterator();
    again.restore(state);
    for (int64_t i = stop; i < 3000; ++i) ASSERT_EQ(again.next()->template item<int64_t>(), i);
    ASSERT_EQ(it.next()->template item<int64_t>(), stop);
  }
}

}  // namespace
}  // namespace runnel::data
