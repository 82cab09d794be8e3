// Random programs give the same values eagerly, traced, and traced with every pass switched off in turn, with one
// thread and two. RUNNEL_PROGRAM_SEED=n runs the program of that seed alone, RUNNEL_PROGRAM_SEEDS=n:m those from n to
// m.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

#include "runnel/graph/passes/pass.h"
#include "tests/function/random_program_generator.h"
#include "tests/support/resident.h"

namespace runnel::random_program {
namespace {

constexpr uint64_t kPrograms = 300;

// bits: all the same, but that one NaN is as good as another. ulps: within 8 units in the last place of the tensor's
// largest element per op. sums: what may be added up in another order.
enum class Match { bits, ulps, sums };

template <class T>
std::string difference(const Tensor& a, const Tensor& b, Match match, size_t num_ops) {
  const auto x = a.host<T>();
  const auto y = b.host<T>();
  double bound = 0;
  if constexpr (std::is_floating_point_v<T>) {
    if (match != Match::bits) {
      double largest = 0;
      for (const T v : x) largest = std::isfinite(v) ? std::max(largest, std::abs(static_cast<double>(v))) : largest;
      const double eps = std::numeric_limits<T>::epsilon();
      bound = largest * (match == Match::ulps ? 8 * eps * static_cast<double>(num_ops) : std::sqrt(eps));
    }
  }
  for (size_t k = 0; k < x.size(); ++k) {
    if (std::memcmp(&x[k], &y[k], sizeof(T)) == 0) continue;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x[k]) && std::isnan(y[k])) continue;
      if (std::isfinite(x[k]) && std::isfinite(y[k]) && std::abs(static_cast<double>(x[k]) - y[k]) <= bound) continue;
      char text[160];
      std::snprintf(text, sizeof(text), "element %zu of %zu: %.17g and %.17g", k, x.size(), static_cast<double>(x[k]),
                    static_cast<double>(y[k]));
      return text;
    }
    return "element " + std::to_string(k) + ": " + std::to_string(x[k]) + " and " + std::to_string(y[k]);
  }
  return "";
}

std::string difference(const Tensor& a, const Tensor& b, Match match, size_t num_ops) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
    return dtype_name(a.dtype()) + a.shape().str() + " and " + dtype_name(b.dtype()) + b.shape().str();
  }
  if (a.dtype() == DType::float32) return difference<float>(a, b, match, num_ops);
  if (a.dtype() == DType::float64) return difference<double>(a, b, match, num_ops);
  if (a.dtype() == DType::int32) return difference<int32_t>(a, b, match, num_ops);
  if (a.dtype() == DType::int64) return difference<int64_t>(a, b, match, num_ops);
  if (a.dtype() == DType::bool_) return difference<bool>(a, b, match, num_ops);
  return std::string("a value of unexpected dtype ") + dtype_name(a.dtype());
}

std::string difference(const Tensors& a, const Tensors& b, Match match, size_t num_ops, const std::string& what) {
  if (a.size() != b.size()) return what + ": " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    const std::string d = difference(a[k], b[k], match, num_ops);
    if (!d.empty()) return what + " " + std::to_string(k) + ": " + d;
  }
  return "";
}

size_t count_ops(const Block& block) {
  size_t n = 0;
  for (const Instr& i : block.body) {
    ++n;
    for (const Block& b : i.blocks) n += 4 * count_ops(b);
  }
  return n;
}
size_t count_ops(const Program& p) {
  size_t n = count_ops(p.main);
  for (const Block& f : p.functions) n += count_ops(f);
  return n;
}

std::string difference(const Program& p, const Outcome& a, const Outcome& b, Match results, Match derivatives) {
  if (!a.error.empty() || !b.error.empty())
    return a.error == b.error ? "" : "errors '" + a.error + "' and '" + b.error + "'";
  const size_t n = 2 + count_ops(p);
  for (size_t call = 0; call < a.results.size(); ++call) {
    const std::string at = "call " + std::to_string(call);
    std::string d = difference(a.results[call], b.results[call], results, n, at + ", result");
    if (d.empty()) d = difference(a.derivatives[call], b.derivatives[call], derivatives, n, at + ", derivative");
    if (!d.empty()) return d;
  }
  return difference(a.variables, b.variables, results, n, "variable");
}

PlanOptions without(const std::vector<std::string>& passes) {
  PlanOptions plan;
  for (const Pass& pass : all_passes()) {
    if (std::find(passes.begin(), passes.end(), pass.name) != passes.end()) plan.*pass.enabled = false;
  }
  return plan;
}

// How the program's ways differ; empty where they do not. The fault is one of the traced ways.
std::string check(const Program& p, Fault fault = Fault::none) {
  const Outcome eager = Machine(p, Way::eager).run();
  if (!eager.error.empty()) return "eager: " + eager.error;
  std::vector<std::string> inexact;
  for (const Pass& pass : all_passes()) {
    if (!pass.exact) inexact.emplace_back(pass.name);
  }
  const bool reordered = p.branches || p.order > 1;
  const Match derivatives = reordered ? Match::sums : Match::bits;
  std::string found;
  const auto same = [&](const std::string& way, const Outcome& want, const Outcome& got, Match results, Match grads) {
    const std::string d = difference(p, want, got, results, grads);
    if (!d.empty() && found.empty()) found = way + ", " + std::to_string(num_threads()) + " threads: " + d;
    return found.empty();
  };
  const auto run = [&](Way way, const std::vector<std::string>& off) {
    return Machine(p, way, fault, without(off)).run();
  };
  const int threads = num_threads();
  for (const int n : {1, 2}) {
    set_num_threads(n);
    if (!same("eager", eager, Machine(p, Way::eager).run(), Match::bits, Match::bits)) break;
    const Outcome traced = run(Way::traced, inexact);
    if (!same("traced", eager, traced, Match::bits, derivatives)) break;
    if (n > 1 && !p.large) break;  // nothing is cut into ranges
    for (const Pass& pass : all_passes()) {
      if (pass.exact) {
        std::vector<std::string> off = inexact;
        off.emplace_back(pass.name);
        same(std::string("without ") + pass.name, traced, run(Way::traced, off), Match::bits, Match::bits);
      } else if (!p.jumps) {
        std::vector<std::string> off = inexact;
        off.erase(std::find(off.begin(), off.end(), pass.name));
        same(std::string("with ") + pass.name, traced, run(Way::traced, off), Match::ulps, Match::ulps);
      }
    }
    if (!inexact.empty()) {
      const Outcome all = run(Way::traced, {});
      if (!p.jumps) same("all passes", eager, all, Match::ulps, reordered ? Match::sums : Match::ulps);
      if (p.jumps && !all.error.empty()) found = "all passes: " + all.error;
    }
    same("unknown shapes", eager, run(Way::unknown_shapes, inexact), Match::bits, derivatives);
    if (p.branches) same("IF and WHILE", eager, run(Way::blocks, inexact), Match::bits, derivatives);
    const bool other_sums = p.order == 0 || (p.tame && !p.train);
    if (!p.functions.empty() && other_sums) {
      same("functions traced", eager, run(Way::inner_traced, inexact), Match::bits, Match::sums);
    }
    if (p.order > 0 && other_sums) {
      same("tape outside", eager, run(Way::tape_outside, inexact), Match::bits, Match::sums);
    }
    if (!found.empty()) break;
  }
  set_num_threads(threads);
  return found;
}

// What is wrong with the program of this seed, and the shortest beginning of it with which something is.
std::string report(uint64_t seed, Fault fault = Fault::none) {
  std::string found = check(Generator::make(seed), fault);
  if (found.empty()) return "";
  for (int length = 1; length < 20; ++length) {
    const Program p = Generator::make(seed, length);
    const std::string shorter = check(p, fault);
    if (!shorter.empty()) return "RUNNEL_PROGRAM_SEED=" + std::to_string(seed) + ": " + shorter + "\n" + text_of(p);
  }
  return "RUNNEL_PROGRAM_SEED=" + std::to_string(seed) + ": " + found + "\n" + text_of(Generator::make(seed));
}

TEST(RandomProgram, TheSameHoweverItIsRun) {
  if (const char* seed = std::getenv("RUNNEL_PROGRAM_SEED")) {
    const uint64_t n = std::strtoull(seed, nullptr, 10);
    std::printf("%s", text_of(Generator::make(n)).c_str());  // now: a crash leaves no time later
    std::fflush(stdout);
    const std::string found = report(n);
    EXPECT_TRUE(found.empty()) << found;
    return;
  }
  uint64_t first = 1;
  uint64_t last = test::kSanitized ? kPrograms / 3 : kPrograms;
  if (const char* range = std::getenv("RUNNEL_PROGRAM_SEEDS")) {
    char* rest = nullptr;
    first = std::strtoull(range, &rest, 10);
    last = std::strtoull(rest + 1, nullptr, 10);
  }
  int failures = 0;
  for (uint64_t seed = first; seed <= last && failures < 5; ++seed) {
    const std::string found = report(seed);
    if (found.empty()) continue;
    ++failures;
    ADD_FAILURE() << found;
  }
}

// What the test promises to cover is in the programs it runs.
TEST(RandomProgram, ProgramsHaveEverything) {
  std::map<std::string, int> uses;
  int large = 0, wild = 0, differentiated = 0, twice = 0, trained = 0, derivatives_of_branches = 0, smooth = 0;
  const std::function<void(const Block&)> count = [&](const Block& block) {
    for (const Instr& i : block.body) {
      ++uses[i.op];
      for (const Block& b : i.blocks) count(b);
    }
  };
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const Program p = Generator::make(seed);
    count(p.main);
    for (const Block& f : p.functions) count(f);
    large += p.large;
    wild += p.wild;
    differentiated += p.order > 0;
    twice += p.order > 1;
    trained += p.train;
    smooth += !p.jumps;
    derivatives_of_branches += p.order > 0 && p.branches;
  }
  for (const ProgramOp& op : program_ops()) EXPECT_GT(uses[op.name], 0) << op.name;
  for (const char* name : {"read", "assign", "assign_add", "assign_sub", "cond", "switch", "while", "call"}) {
    EXPECT_GT(uses[name], 20) << name;
  }
  EXPECT_GT(large, 20);
  EXPECT_GT(wild, 50);
  EXPECT_GT(differentiated, 60);
  EXPECT_GT(twice, 5);
  EXPECT_GT(trained, 10);
  EXPECT_GT(derivatives_of_branches, 30);
  EXPECT_GT(smooth, 20);
}

TEST(RandomProgram, ASeedIsAProgram) {
  EXPECT_EQ(text_of(Generator::make(7)), text_of(Generator::make(7)));
  EXPECT_NE(text_of(Generator::make(7)), text_of(Generator::make(8)));
}

TEST(RandomProgram, MistakesAreFound) {
  for (const Fault fault :
       {Fault::last_bit, Fault::lost_write, Fault::wrong_arm, Fault::extra_iteration, Fault::lost_gradient}) {
    std::string found;
    for (uint64_t seed = 1; seed <= 60 && found.empty(); ++seed) {
      if (!Generator::make(seed).large) found = report(seed, fault);
    }
    EXPECT_NE(found.find("RUNNEL_PROGRAM_SEED="), std::string::npos) << static_cast<int>(fault);
    EXPECT_NE(found.find("program of seed"), std::string::npos) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace runnel::random_program
