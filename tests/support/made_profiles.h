#pragma once

// A recording made by hand: four steps of a training whose every part is known.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "runnel/base/profile.h"

namespace runnel::test {

inline constexpr int64_t kMs = 1'000'000;  // in nanoseconds

inline void put_in_order(profile::Recording& r) {
  std::stable_sort(r.events.begin(), r.events.end(), [](const profile::Event& a, const profile::Event& b) {
    return std::tie(a.begin_ns, b.end_ns) < std::tie(b.begin_ns, a.end_ns);
  });
}

// Step k of 4 has the number 10 + k and takes 8 + k / 2 ms from 10 k ms on. In it: 1.5 ms wait for input, 5.5 ms run of
// a graph, and within that 3.5 ms in which one or both of two threads compute: MatMul 2 ms, Relu 1 ms, AddV2 3 ms
// beside them. A thread of the pipeline needs 3 ms for each element, 2.8 ms of them in a map.
inline profile::Recording training_recording() {
  using profile::Kind;
  profile::Recording r{.host = "box", .started_unix_ns = 1'700'000'000'000'000'000, .length_ns = 40 * kMs};
  r.threads = {{100, "main"}, {101, "pool 0"}, {102, "pipeline Prefetch"}};
  r.peak = {.flops_per_second = 400e9, .bytes_per_second = 20e9};
  for (int64_t k = 0; k < 4; ++k) {
    const int64_t t = k * 10 * kMs, step = 10 + k;
    const auto at = [&](double ms) { return t + std::llround(ms * 10) * kMs / 10; };
    r.events.push_back(
        {.name = "train", .kind = Kind::step, .begin_ns = t, .end_ns = at(8) + k * kMs / 2, .step = step});
    r.events.push_back(
        {.name = "iterator", .kind = Kind::input_wait, .begin_ns = at(0.2), .end_ns = at(1.7), .step = step});
    r.events.push_back({.name = "Prefetch",
                        .kind = Kind::input_wait,
                        .begin_ns = at(0.3),
                        .end_ns = at(1.6),
                        .step = step,
                        .detail = "0 of 2 elements ready"});
    r.events.push_back({.name = "train_step", .kind = Kind::run, .begin_ns = at(2), .end_ns = at(7.5), .step = step});
    r.events.push_back({.name = "dense/MatMul",
                        .op_type = "MatMul",
                        .kind = Kind::node,
                        .begin_ns = at(2.5),
                        .end_ns = at(4.5),
                        .step = step,
                        .bytes = 8'000'000,
                        .flops = 4e8,
                        .detail = "float32[50,784] float32[784,100] -> float32[50,100]"});
    r.events.push_back({.name = "dense/Relu",
                        .op_type = "Relu",
                        .kind = Kind::node,
                        .begin_ns = at(4.6),
                        .end_ns = at(5.6),
                        .step = step,
                        .bytes = 10'000'000});
    r.events.push_back({.name = "dense/add",
                        .op_type = "AddV2",
                        .kind = Kind::node,
                        .thread = 1,
                        .begin_ns = at(3),
                        .end_ns = at(6),
                        .step = step});
    r.events.push_back({.name = "Prefetch", .kind = Kind::stage, .thread = 2, .begin_ns = t, .end_ns = at(3.1)});
    r.events.push_back({.name = "Prefetch::Batch", .kind = Kind::stage, .thread = 2, .begin_ns = t, .end_ns = at(3)});
    r.events.push_back(
        {.name = "Prefetch::Batch::Map", .kind = Kind::stage, .thread = 2, .begin_ns = at(0.1), .end_ns = at(2.9)});
    r.memory.push_back({at(2.6), 5'000'000 + 1'000'000 * (k + 1), "dense/MatMul"});
  }
  r.memory.insert(r.memory.begin(), {0, 5'000'000, ""});
  r.memory.push_back({38 * kMs, 8'000'000, "dense/add"});
  put_in_order(r);
  return r;
}

}  // namespace runnel::test
