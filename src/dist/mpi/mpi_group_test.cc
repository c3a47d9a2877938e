// Runs the checks of process_group_test.cc over MPI: `mpirun -np 3 dist_mpi_test`.
#include <numeric>

#include "dist/message_group.h"
#include "dist/mpi_plugin.h"
#include "dist/testing/process_group_checks.h"

namespace octavo {
namespace {

std::unique_ptr<Transport> transport;

MessageGroup everyone() {
  std::vector<int> members(static_cast<std::size_t>(transport->size()));
  std::iota(members.begin(), members.end(), 0);
  return MessageGroup(*transport, std::move(members));
}

TEST(MpiGroup, SumsAreAddedInTheOrderOfRanks) {
  MessageGroup group = everyone();
  group_checks::sums_are_added_in_the_order_of_ranks(group);
  EXPECT_TRUE(group.status().has_value());
}

TEST(MpiGroup, ManyRoundsOfAllKindsDoNotMeet) {
  MessageGroup group = everyone();
  group_checks::rounds_of_all_kinds_do_not_meet(group);
  EXPECT_TRUE(group.status().has_value());
}

TEST(MpiGroup, MessagesMayBeLarge) {
  MessageGroup group = everyone();
  group_checks::messages_may_be_large(group);
  EXPECT_TRUE(group.status().has_value());
}

TEST(MpiGroup, PartsOfAllSizesAreGathered) {
  MessageGroup group = everyone();
  group_checks::parts_of_all_sizes_are_gathered(group);
  EXPECT_TRUE(group.status().has_value());
}

// The messages arrive before the receiver expects them.
TEST(MpiGroup, RanksThatBothSendFirstDoNotWaitForEachOther) {
  const std::vector<std::byte> much(32 << 20, std::byte{7});
  std::vector<std::byte> theirs(much.size());
  const int size = transport->size(), rank = transport->rank();
  const Transport::Send send[] = {{(rank + 1) % size, much}};
  const Transport::Receive receive[] = {{(rank + size - 1) % size, theirs}};
  ASSERT_TRUE(transport->exchange(send, {}, 0));
  ASSERT_TRUE(transport->exchange({}, receive, 0));
  EXPECT_TRUE(theirs == much);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto opened = octavo::open_mpi_transport();
  if (!opened) {
    fmt::print(stderr, "{}\n", opened.error().message);
    return 1;
  }
  octavo::transport = *std::move(opened);
  const int failed = RUN_ALL_TESTS();
  octavo::transport.reset();
  return failed;
}
