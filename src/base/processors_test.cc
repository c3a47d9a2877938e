#include "base/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

using testing::ElementsAre;

TEST(Processors, ListsAreReadAsTheKernelWritesThem) {
  EXPECT_THAT(*read_processor_list("0"), ElementsAre(0));
  EXPECT_THAT(*read_processor_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*read_processor_list("5,1-2,2"), ElementsAre(1, 2, 5));
  for (const char* bad : {"", ",", "0,", "0-", "-1", "3-1", "a", "0 1", "0-1024", "99999999999"})
    EXPECT_FALSE(read_processor_list(bad)) << bad;
}

TEST(Processors, NodesHaveTheProcessorsThatThisProcessMayUse) {
  ScratchDirectory root;
  EXPECT_TRUE(numa_nodes(root.path()).empty());
  root.write("sys/devices/system/node/online", "0,2-3\n");
  root.write("sys/devices/system/node/node0/cpulist", "0-1023\n");
  root.write("sys/devices/system/node/node2/cpulist", "\n");
  const auto nodes = numa_nodes(root.path());
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_FALSE(nodes[0].empty());
  EXPECT_LT(nodes[0].size(), 1024u);
  for (const int memory_alone : {1, 2, 3}) EXPECT_TRUE(nodes[static_cast<std::size_t>(memory_alone)].empty());
  EXPECT_TRUE(bind_thread(nodes[0]));
}

// Slice of the calling thread in ns; 0: the kernel is older than 6.12.
std::uint64_t slice_ns() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline, period;
  } attributes{};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0), 0);
  return attributes.slice_ns;
}

TEST(Processors, AThreadWithAShortSliceStartsThreadsWithTheDefaultSlice) {
  std::jthread([default_ns = slice_ns()] {
    shorten_slice();
    const bool shortens = default_ns > 0 && getpriority(PRIO_PROCESS, 0) >= 0;
    EXPECT_EQ(slice_ns(), shortens ? 100'000u : default_ns);
    std::jthread([default_ns] { EXPECT_EQ(slice_ns(), default_ns); });
  });
}

}  // namespace
}  // namespace octavo
