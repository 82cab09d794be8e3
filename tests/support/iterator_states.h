#pragma once

// Small pipelines of every kind of stage whose states hold something, and states made for them from any bytes.
#include <string>
#include <vector>

#include "runnel/base/crc32c.h"
#include "runnel/data/state.h"
#include "runnel/runnel.h"
#include "tests/support/temp_dir.h"

namespace runnel::test {

class IteratorStates {
 public:
  IteratorStates() {
    using namespace data;
    const auto stream = [](int64_t n) {
      return from_generator([n] {
        return [n, i = int64_t{0}]() mutable -> std::optional<Tensor> {
          if (i == n) return std::nullopt;
          return Tensor(i++);
        };
      });
    };
    const auto more = [](Tensor x) { return x + int64_t{1}; };
    const auto lines = dir_.file("lines"), records = dir_.file("records");
    Env::posix().write_file(lines, as_bytes(std::string("1\n22\n333\n\n55555\n")));
    io::TFRecordWriter writer(records);
    for (int k = 0; k < 9; ++k) writer.write(std::string(static_cast<size_t>(k), 'x'));
    writer.close();
    all_ = {
        range(50).map(more, 2).batch(3).prefetch(2),
        range(40).cache().shuffle(8, 1).batch(2).unbatch(),
        range(12).interleave([](Tensor x) { return range(x.item<int64_t>() % 4); },
                             {.cycle_length = 3, .block_length = 2, .num_parallel_calls = 2}),
        range(30).cache().window(4, {.shift = 3, .stride = 2}).flat_map([](Dataset<Tensor> w) { return w; }),
        range(30).cache().group_by_window([](Tensor x) { return x % int64_t{3}; },
                                          [](int64_t, Dataset<Tensor> w) { return w.repeat(2); }, 4),
        stream(20).scan(Tensor(int64_t{0}),
                        [](Tensor s, Tensor x) {
                          return std::tuple{s + x, s};
                        }),
        stream(6).repeat(3).skip(2).take(12).filter([](Tensor x) { return x != int64_t{4}; }),
        sample_from_datasets<Tensor>({range(5), stream(4), range(3).repeat(2)}, {1, 2, 3}, 5),
        stream(30).map(more, {.num_parallel_calls = 3, .deterministic = false}).prefetch(4),
        stream(15).map([](Tensor x) { return x % int64_t{4}; }).unique().concatenate(range(5)),
        stream(15)
            .map([](Tensor x) { return range(x.item<int64_t>() % 5 + 1).batch(9).make_iterator().get_next(); })
            .bucket_by_sequence_length([](Tensor x) { return x.dim(0); }, {3, 5}, {2, 2, 2}),
        TextLineDataset(lines).repeat(2).map([](Tensor x) { return Tensor(x.item<std::string>().size()); }),
        TFRecordDataset(records, {.num_parallel_reads = 2}).batch(4).rebatch(3).unbatch().map([](Tensor x) {
          return Tensor(x.item<std::string>().size());
        }),
        zip(range(9), stream(7).cache()).map([](Tensor a, Tensor b) { return a + b; }, AUTOTUNE).batch(2),
        range(20)
            .cache()
            .rejection_resample([](Tensor x) { return x % int64_t{2}; }, {0.5, 0.5}, {}, 3)
            .map([](Tensor, Tensor x) { return x; }),
    };
    for (const Dataset<Tensor>& d : all_) states_.push_back(d.make_iterator().save());
  }

  size_t size() const { return all_.size(); }
  const data::Dataset<Tensor>& pipeline(size_t k) const { return all_[k]; }

  // A state of pipeline k that says what `stages` says.
  std::string state(size_t k, std::string_view stages) const {
    data::StateReader in(std::string_view(states_[k]).substr(0, states_[k].size() - 4));
    data::StateWriter out;
    out.text(in.text());
    out.integer(in.integer());
    out.integer(in.integer());
    const uint64_t seeds = in.integer();
    out.integer(seeds);
    for (uint64_t n = seeds; n > 0; --n) out.integer(in.integer());
    out.text(stages);
    return signed_state(out.take());
  }
  // What the stages said in a state.
  static std::string stages(std::string_view state) {
    data::StateReader in(state.substr(0, state.size() - 4));
    in.text();
    in.integer();
    in.integer();
    for (uint64_t n = in.integer(); n > 0; --n) in.integer();
    return std::string(in.text());
  }
  static std::string signed_state(std::string bytes) {
    append_fixed32(bytes, crc32c(bytes.data(), bytes.size()));
    return bytes;
  }

  // An Error, or an iterator that works: goes on, saves itself, restores that.
  static void try_state(const data::Dataset<Tensor>& d, std::string_view state) {
    auto it = d.make_iterator();
    try {
      it.restore(state);
    } catch (const Error&) {
    }
    const auto go = [&it](int n) {
      for (int k = 0; k < n; ++k) {
        try {
          if (!it.next()) return;
        } catch (const Error&) {
        }
      }
    };
    go(3);
    const std::string own = it.save();
    try {
      it.restore(own);
    } catch (const Error&) {
    }
    go(100);
  }

 private:
  TempDir dir_;
  std::vector<data::Dataset<Tensor>> all_;
  std::vector<std::string> states_;
};

}  // namespace runnel::test
