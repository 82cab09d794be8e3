#include "runnel/base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "runnel/base/format.h"

namespace runnel {
namespace {

int affinity_cpus() {
  // The mask's size is the kernel's: grow until it fits.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) return 1;
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const int rc = sched_getaffinity(0, size, set);
    const int error = errno;
    const int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (rc == 0) return std::max(count, 1);
    if (error != EINVAL) return 1;
  }
  return 1;
}

int cpus_of(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return 0;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, 1e6));
}

int limit_v2(const std::string& folder) {
  std::ifstream in(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max") return 0;
  return cpus_of(std::strtod(quota.c_str(), nullptr), period);
}

int limit_v1(const std::string& folder) {
  double quota = 0, period = 0;
  if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> quota)) return 0;
  if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period)) return 0;
  return cpus_of(quota, period);
}

// The tightest limit of base/path and its ancestors up to base. A container often sees its own group mounted
// as base while path still names it from outside: the missing folders then simply carry no limit.
template <class ReadLimit>
int walk(const std::string& base, std::string path, ReadLimit read_limit) {
  int least = 0;
  while (true) {
    const int limit = read_limit(base + path);
    if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
    const size_t slash = path.find_last_of('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int cgroup_cpu_limit(const std::string& root, const std::string& proc_cgroup) {
  int least = 0;
  const auto note = [&](int limit) {
    if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
  };
  std::ifstream in(proc_cgroup);
  for (std::string line; std::getline(in, line);) {  // "id:controllers:/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      note(walk(root, path, limit_v2));
      note(walk(root + "/unified", path, limit_v2));
    } else if (lists_cpu(controllers)) {
      note(walk(root + "/" + controllers, path, limit_v1));
      if (controllers != "cpu") note(walk(root + "/cpu", path, limit_v1));
    }
  }
  return least;
}

int usable_cpus() {
  const int cpus = affinity_cpus();
  const int limit = cgroup_cpu_limit("/sys/fs/cgroup", "/proc/self/cgroup");
  return limit > 0 ? std::min(cpus, limit) : cpus;
}

int thread_count_from(const char* text) {
  if (text == nullptr) return std::min(usable_cpus(), kMaxThreads);
  const std::string_view view(text);
  int n = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), n);
  if (error != std::errc() || end != view.data() + view.size() || n < 1 || n > kMaxThreads) {
    throw invalid_argument("RUNNEL_NUM_THREADS must be a whole number from 1 to {}, not '{}'", kMaxThreads, text);
  }
  return n;
}

}  // namespace runnel
