#include "engine/load/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "base/thread_pool.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using Nodes = std::vector<std::vector<int>>;

std::string shared(const NumaOptions& options, int processes, const Nodes& nodes) {
  const auto lists = share_processors(options, processes, nodes);
  return lists ? *lists : lists.error().field + ": " + lists.error().message;
}

TEST(Placement, EachProcessHasNodesOfItsOwnOrAPartnerOnOne) {
  const Nodes two = {{0, 1}, {2, 3}};
  EXPECT_EQ(shared({}, 2, two), "0,1|2,3");
  EXPECT_EQ(shared({}, 4, two), "0,1|0,1|2,3|2,3");
  EXPECT_EQ(shared({}, 2, {{0}, {1}, {2}, {3}}), "0,1|2,3");
  EXPECT_EQ(shared({}, 2, {{0}, {}, {2}}), "0|2") << "a node of memory alone";
}

TEST(Placement, NobodyIsBoundWhereItHelpsNobody) {
  EXPECT_EQ(shared({}, 1, {{0, 1}, {2, 3}}), "");
  EXPECT_EQ(shared({}, 2, {{0, 1}}), "");
  EXPECT_EQ(shared({}, 2, {}), "");
  EXPECT_EQ(shared({.bind = false}, 2, {{0}, {1}}), "");
}

TEST(Placement, NodesAndListsAreTakenAsTheyAreAsked) {
  const Nodes two = {{0, 1}, {2, 3}};
  EXPECT_EQ(shared({.nodes = {1, 0}}, 2, two), "2,3|0,1");
  EXPECT_EQ(shared({.nodes = {1}}, 1, two), "2,3");
  EXPECT_EQ(shared({.processors = {"0-2", "3"}}, 2, two), "0-2|3");
  EXPECT_EQ(
      shared({.nodes = {1}}, 2, two),
      "numa_bind_nodes: has 1 entries for 2 engine processes on this host: give one entry for each process");
  EXPECT_EQ(shared({.nodes = {2}}, 1, two), "numa_bind_nodes: NUMA node 2 has no processor");
  EXPECT_EQ(
      shared({.processors = {"0"}}, 2, two),
      "numa_bind_cpus: has 1 entries for 2 engine processes on this host: give one entry for each process");
  EXPECT_THAT(shared({.processors = {"0", "3-1"}}, 2, two),
              HasSubstr("\"3-1\" must be a list of processors"));
}

std::vector<int> allowed() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> numbers;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) numbers.push_back(i);
  return numbers;
}

TEST(Placement, AProcessRunsOnItsListWithAThreadForEachProcessor) {
  const std::vector<int> all = allowed();
  const std::string first = std::to_string(all.front()), last = std::to_string(all.back());
  EngineOptions options;
  options.parallel.data_parallel_size = 2;
  options.device.processors = first + "|" + last;
  options.index = 1;
  std::thread([&] {  // placed() binds the calling thread
    const auto own = placed(options, 0);
    ASSERT_TRUE(own) << own.error().message;
    EXPECT_EQ(own->device.threads, 1);
    EXPECT_EQ(allowed(), std::vector<int>{all.back()});
  })
      .join();
  EXPECT_EQ(allowed(), all);
}

TEST(Placement, ThreadsAreSharedOutAmongProcesses) {
  EngineOptions options;
  EXPECT_EQ(placed(options, 0)->device.threads, 0) << "as many as there are";
  options.parallel.tensor_parallel_size = 2;
  EXPECT_EQ(placed(options, 1)->device.threads, std::max(1, usable_processors() / 2));
  options.device.threads = 6;
  EXPECT_EQ(placed(options, 1)->device.threads, 3);
}

TEST(Placement, ProcessorsThatAreNotThereAreAnError) {
  EngineOptions options;
  options.device.processors = "1023";
  const auto own = placed(options, 0);
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().message, "this process may not use any of the processors 1023");
}

}  // namespace
}  // namespace octavo
