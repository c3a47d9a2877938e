#include "base/host_memory.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

class HostMemoryFiles : public testing::Test {
 protected:
  HostMemoryFiles() {
    root_.write("proc/meminfo",
                "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\nHugePages_Total:    0\n"
                "Hugepagesize:       2048 kB\n");
  }
  HostMemory read() const { return host_memory(root_.path()); }

  ScratchDirectory root_;
};

TEST_F(HostMemoryFiles, WithoutACgroupTheMachinesMemoryIsThere) {
  EXPECT_EQ(read().all(), 16u << 20);
  EXPECT_EQ(read().available, 8u << 20);
  EXPECT_FALSE(read().limit);
}

// As in a container: each level can have a limit, and file pages in the cache count as used.
TEST_F(HostMemoryFiles, TheLeastLimitOnTheWayUpCounts) {
  root_.write("proc/self/cgroup", "0::/system/octavo\n");
  root_.write("sys/fs/cgroup/memory.max", "max\n");
  root_.write("sys/fs/cgroup/system/memory.max", "4096000\n");
  root_.write("sys/fs/cgroup/system/memory.current", "3000000\n");
  root_.write("sys/fs/cgroup/system/memory.stat",
              "anon 900000\nfile 2100000\ninactive_file 1500000\nactive_file 500000\n");
  root_.write("sys/fs/cgroup/system/octavo/memory.max", "8192000\n");
  EXPECT_EQ(read().all(), 4096000u);
  EXPECT_EQ(read().available, 4096000u - 1000000u);
}

TEST_F(HostMemoryFiles, VersionOneHasAFolderOfItsOwn) {
  root_.write("proc/self/cgroup", "12:cpu,cpuacct:/box\n9:memory:/box\n0::/\n");
  root_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root_.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2000000\n");
  root_.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1500000\n");
  root_.write("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 7\ntotal_inactive_file 100000\n");
  EXPECT_EQ(read().all(), 2000000u);
  EXPECT_EQ(read().available, 600000u);
}

TEST_F(HostMemoryFiles, ALimitAboveTheMachineIsNone) {
  root_.write("proc/self/cgroup", "9:memory:/\n");
  root_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(read().limit);
  EXPECT_EQ(read().available, 8u << 20);
}

TEST_F(HostMemoryFiles, MayBeMissingOrMakeNoSense) {
  root_.write("proc/self/cgroup", "0::/../..\nnothing\n");
  EXPECT_EQ(read().all(), 16u << 20);
  root_.write("proc/meminfo", "\nMemTotal: lots\n");
  EXPECT_EQ(read().all(), 0u);
  EXPECT_EQ(read().available, 0u);
}

}  // namespace
}  // namespace octavo
