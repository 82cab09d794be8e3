#include "runnel/base/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runnel/base/error.h"

namespace runnel {
namespace {

class CgroupLimit : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("runnel_cgroup_" + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& file, const std::string& text) {
    const auto path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  int limit() { return cgroup_cpu_limit(root_ / "fs", root_ / "proc"); }

  std::filesystem::path root_;
};

TEST_F(CgroupLimit, NoneWhereNothingIsSet) {
  EXPECT_EQ(limit(), 0);
  put("proc", "0::/\n");
  EXPECT_EQ(limit(), 0);
  put("fs/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 0);
  put("fs/cpu.max", "nonsense\n");
  EXPECT_EQ(limit(), 0);
}

TEST_F(CgroupLimit, Version2RoundsUp) {
  put("proc", "0::/\n");
  put("fs/cpu.max", "150000 100000\n");
  EXPECT_EQ(limit(), 2);
  put("fs/cpu.max", "200000 100000\n");
  EXPECT_EQ(limit(), 2);
  put("fs/cpu.max", "10000 100000\n");
  EXPECT_EQ(limit(), 1);
}

TEST_F(CgroupLimit, Version2TakesTheTightestAncestor) {
  put("proc", "0::/a/b\n");
  put("fs/a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(limit(), 8);
  put("fs/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupLimit, GroupNamedFromOutsideTheContainer) {
  put("proc", "0::/docker/0123\n");
  put("fs/cpu.max", "400000 100000\n");
  EXPECT_EQ(limit(), 4);
}

TEST_F(CgroupLimit, Version1) {
  put("proc", "5:cpuset:/x\n4:cpu,cpuacct:/x\n");
  put("fs/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  put("fs/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 0);
  put("fs/cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(limit(), 3);
  put("fs/cpu/x/cpu.cfs_quota_us", "100000\n");
  put("fs/cpu/x/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(limit(), 2);
}

TEST(UsableCpus, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &before)) {
      CPU_SET(i, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(ThreadCountFrom, Validates) {
  EXPECT_EQ(thread_count_from("1"), 1);
  EXPECT_EQ(thread_count_from("16"), 16);
  EXPECT_EQ(thread_count_from(nullptr), usable_cpus());
  for (const char* bad : {"", "0", "-2", "1.5", " 2", "2 ", "many", "99999999999999"}) {
    EXPECT_THROW(thread_count_from(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace runnel
