#pragma once

#include <string>

#include "runnel/base/export.h"

namespace runnel {

// CPUs this process may use: those of its affinity mask, at most its cgroup CPU quota rounded up. At least 1.
RUNNEL_API int usable_cpus();

// The CPU quota that the groups listed in proc_cgroup (/proc/self/cgroup) carry under the hierarchy mounted
// at root (/sys/fs/cgroup), version 1 or 2, the tightest of the group and its ancestors, rounded up; 0 for
// none.
RUNNEL_API int cgroup_cpu_limit(const std::string& root, const std::string& proc_cgroup);

// The count asked for by the text of RUNNEL_NUM_THREADS (null when unset), else usable_cpus().
RUNNEL_API int thread_count_from(const char* text);

inline constexpr int kMaxThreads = 1024;

}  // namespace runnel
