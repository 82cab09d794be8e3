#pragma once

// The protocol of a benchmark program, for both sides: PROGRAM --case NAME --threads N prints the seconds of one call,
// a median over repeated measurements, or for some cases another number (bytes). Where a case has several ways
// (layouts, algorithms), --choose prints the fastest, for --way later. No dependency on either side's library.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Case {
  std::string name;
  // Prepares inputs and returns the calls to time. More than one: ways to do the same, the fastest counts.
  std::function<std::vector<std::function<void()>>(int threads)> make;
  std::function<double()> number = nullptr;  // in place of `make`: what is printed
};

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

constexpr double kLongCall = 0.1;  // seconds: such calls are repeated less, so that a benchmark ends within a minute

// The seconds of the second call.
inline double time_once(const std::function<void()>& call) {
  call();
  const double start = seconds();
  call();
  return std::max(seconds() - start, 1e-9);
}

// The median over batches of calls, each batch long enough for the clock, for about `budget` seconds; of long calls
// three.
inline double measure(const std::function<void()>& call, double budget) {
  const double once = time_once(call);
  const bool is_long = once > kLongCall;
  const long batch = std::clamp(static_cast<long>(2e-3 / once), 1L, 100000L);
  const double warm = seconds();
  do {
    call();
  } while (!is_long && seconds() - warm < std::min(0.1, budget / 4));
  std::vector<double> times;
  const double begin = seconds();
  while (times.size() < (is_long ? 3 : 5) || (seconds() - begin < budget && times.size() < 1000)) {
    const double start = seconds();
    for (long i = 0; i < batch; ++i) call();
    times.push_back((seconds() - start) / static_cast<double>(batch));
  }
  return median(times);
}

// Deterministic values in [-0.5, 0.5).
inline void fill(float* p, size_t n, unsigned seed = 1) {
  unsigned x = seed * 2654435761u + 12345u;
  for (size_t i = 0; i < n; ++i) {
    x = x * 1664525u + 1013904223u;
    p[i] = static_cast<float>(x >> 8) / 16777216.0f - 0.5f;
  }
}

// The number of the fastest, by a short look at each.
inline size_t fastest(const std::vector<std::function<void()>>& calls) {
  size_t best = 0;
  double best_time = 1e30;
  for (size_t i = 0; calls.size() > 1 && i < calls.size(); ++i) {
    double t = time_once(calls[i]);
    if (t < kLongCall) t = measure(calls[i], 0.15);
    if (t < best_time) best_time = t, best = i;
  }
  return best;
}

inline int main_of(int argc, char** argv, const std::vector<Case>& cases, const std::function<void(int)>& set_threads) {
  std::string name;
  int threads = 1;
  int way = -1;
  bool choose = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--list")) {
      for (const Case& c : cases) std::printf("%s\n", c.name.c_str());
      return 0;
    }
    if (!std::strcmp(argv[i], "--choose")) choose = true;
    if (!std::strcmp(argv[i], "--case") && i + 1 < argc) name = argv[++i];
    if (!std::strcmp(argv[i], "--threads") && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (!std::strcmp(argv[i], "--way") && i + 1 < argc) way = std::atoi(argv[++i]);
  }
  for (const Case& c : cases) {
    if (c.name != name) continue;
    set_threads(threads);
    if (c.number) {
      std::printf("%.9e\n", c.number());
      return 0;
    }
    const auto calls = c.make(threads);
    const size_t chosen = way >= 0 ? static_cast<size_t>(way) : fastest(calls);
    if (choose) {
      std::printf("%zu\n", chosen);
    } else {
      std::printf("%.9e\n", measure(calls.at(chosen), 0.6));
    }
    return 0;
  }
  std::fprintf(stderr, "usage: %s --list | --case NAME --threads N [--choose | --way K]\n", argv[0]);
  return 2;
}

}  // namespace bench
