// Runs the same checks over each transport that needs no other program; mpi/mpi_group_test.cc checks MPI.
#include "dist/testing/process_group_checks.h"

#include <functional>
#include <thread>

#include "dist/message_group.h"
#include "dist/rank_layout.h"
#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "dist/tcp_socket.h"
#include "dist/tcp_transport.h"

namespace octavo {
namespace {

using Body = std::function<void(ProcessGroup&)>;

// Runs `body` on each rank; ranks are threads.
void over_shared_memory(int size, const Body& body) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(size)).value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      SharedMemoryGroup group(memory.bytes(), {.rank = rank, .size = size, .check = {}, .spin = false});
      body(group);
      EXPECT_TRUE(group.status().has_value());
    });
}

void over_tcp(int size, const Body& body) {
  const std::pair<Socket, int> port = reserve_port().value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const auto transport =
          TcpTransport::meet({.rank = rank, .size = size, .address = "127.0.0.1", .port = port.second})
              .value();
      std::vector<int> members;
      for (int i = 0; i < size; ++i) members.push_back(i);
      MessageGroup group(*transport, members);
      body(group);
      EXPECT_TRUE(group.status().has_value());
    });
}

class ProcessGroups : public testing::TestWithParam<void (*)(int, const Body&)> {};

TEST_P(ProcessGroups, SumsAreAddedInTheOrderOfRanks) {
  for (const int size : {1, 2, 4}) GetParam()(size, group_checks::sums_are_added_in_the_order_of_ranks);
}

TEST_P(ProcessGroups, ManyRoundsOfAllKindsDoNotMeet) {
  GetParam()(3, group_checks::rounds_of_all_kinds_do_not_meet);
}

TEST_P(ProcessGroups, PartsOfAllSizesAreGathered) {
  for (const int size : {1, 2, 4}) GetParam()(size, group_checks::parts_of_all_sizes_are_gathered);
}

TEST_P(ProcessGroups, MessagesMayBeLarge) { GetParam()(2, group_checks::messages_may_be_large); }

INSTANTIATE_TEST_SUITE_P(Transports, ProcessGroups, testing::Values(over_shared_memory, over_tcp),
                         [](const auto& param) { return param.index == 0 ? "SharedMemory" : "Tcp"; });

TEST(RankLayout, StagesAndTheirNeighbours) {
  const RankLayout layout{.tensor = 2, .pipeline = 3};
  EXPECT_EQ(layout.groups(),
            (std::vector<std::vector<int>>{
                {0, 1, 2, 3, 4, 5}, {0, 1}, {2, 3}, {4, 5}, {2, 0}, {3, 1}, {4, 2}, {5, 3}}));
  EXPECT_EQ(layout.stage(0), 2);
  EXPECT_EQ(layout.stage(5), 0);
  EXPECT_EQ(layout.part(5), 1);
  EXPECT_EQ(RankLayout{}.groups(), (std::vector<std::vector<int>>{{0}}));
}

}  // namespace
}  // namespace octavo
