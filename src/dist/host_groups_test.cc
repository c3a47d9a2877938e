#include "dist/host_groups.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <thread>

#include "dist/shared_memory.h"

namespace octavo {
namespace {

constexpr int kSteps = 60;
constexpr std::size_t kSlotBytes = 4096;

// Messages of a step, as in RankedExecutor. All ranks receive `begin` with a number. The last stage receives
// `end` of the oldest step.
enum class Order : std::uint8_t { begin, end, stop };

void send_order(ProcessGroup& all, Order order, int number = 0) {
  std::vector<std::byte> message(1 + sizeof number);
  message[0] = static_cast<std::byte>(order);
  std::memcpy(&message[1], &number, sizeof number);
  all.broadcast(message);
}

// Each stage adds one to the numbers that it sends on; the ranks of a stage sum them.
void compute(RankGroups& groups, const RankLayout& layout, int step, std::size_t count) {
  std::vector<float> rows(count, static_cast<float>(step));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(rows));
  if (groups.from_stage_before) groups.from_stage_before->broadcast(bytes);
  std::vector<float> part(count, 1.0F / static_cast<float>(layout.tensor));
  if (groups.tensor) groups.tensor->all_reduce(part);
  for (std::size_t i = 0; i < count; ++i) rows[i] += part[i];
  if (groups.to_stage_behind) return groups.to_stage_behind->broadcast(bytes);
  EXPECT_EQ(rows.front(), static_cast<float>(step + layout.pipeline));
  EXPECT_EQ(rows.back(), static_cast<float>(step + layout.pipeline));
}

// Begins steps until every stage has a step. Then repeatedly ends the oldest step and begins another.
void lead(RankGroups& groups, const RankLayout& layout, std::size_t count) {
  std::deque<int> launched;
  for (int step = 0; step < kSteps || !launched.empty(); ++step) {
    if (step < kSteps) {
      send_order(*groups.all, Order::begin, step);
      launched.push_back(step);
      if (std::ssize(launched) < layout.pipeline) continue;
    }
    send_order(*groups.all, Order::end);
    compute(groups, layout, launched.front(), count);
    launched.pop_front();
    for (int i = 0; i < 2; ++i) send_order(*groups.all, Order::begin, -1);
  }
  send_order(*groups.all, Order::stop);
}

void follow(RankGroups& groups, const RankLayout& layout, int rank, std::size_t count) {
  const bool last = layout.stage(rank) == layout.pipeline - 1;
  std::deque<int> waiting;
  for (std::vector<std::byte> message; groups.status();) {
    groups.all->broadcast(message);
    if (!groups.status() || static_cast<Order>(message[0]) == Order::stop) return;
    int step = 0;
    std::memcpy(&step, &message[1], sizeof step);
    if (static_cast<Order>(message[0]) == Order::begin) {
      if (step < 0) continue;
      if (last)
        waiting.push_back(step);
      else
        compute(groups, layout, step, count);
    } else if (last) {
      compute(groups, layout, waiting.front(), count);
      waiting.pop_front();
    }
  }
}

void run_steps(const RankLayout& layout, std::size_t count) {
  const auto options = [&](int rank) {
    return HostGroupsOptions{.layout = layout,
                             .rank = rank,
                             .check = {},
                             .spin = false,
                             .order_bytes = kSlotBytes,
                             .handed_on_bytes = kSlotBytes};
  };
  const SharedMemory memory = SharedMemory::create(host_groups_bytes(options(0))).value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < layout.size(); ++rank)
    threads.emplace_back([&, rank] {
      RankGroups groups = host_groups(memory.bytes(), options(rank));
      groups.set_timeout_ms(30'000);
      rank == 0 ? lead(groups, layout, count) : follow(groups, layout, rank, count);
      EXPECT_TRUE(groups.status()) << "rank " << rank << ": " << groups.status().error().message;
    });
}

TEST(HostGroups, StagesDoNotWaitForEachOtherWithoutEnd) {
  for (const int stages : {1, 2, 3, 4, 6})
    for (const std::size_t bytes : {std::size_t{64}, kSlotBytes, 3 * kSlotBytes + 64})
      run_steps({.tensor = 1, .pipeline = stages}, bytes / sizeof(float));
  run_steps({.tensor = 2, .pipeline = 3}, 64);
}

TEST(HostGroups, ErrorsNameARankByItsNumberInTheLayout) {
  const RankLayout layout{.tensor = 2, .pipeline = 2};
  HostGroupsOptions options{.layout = layout, .rank = 1, .check = {}, .spin = false};
  options.order_bytes = options.handed_on_bytes = kSlotBytes;
  const SharedMemory memory = SharedMemory::create(host_groups_bytes(options)).value();
  RankGroups groups = host_groups(memory.bytes(), options);
  groups.set_timeout_ms(100);
  std::vector<std::byte> rows(8);
  groups.from_stage_before->broadcast(std::span(rows));
  ASSERT_FALSE(groups.status());
  EXPECT_EQ(groups.status().error().message, "rank 3 has not answered for 100 ms");
}

}  // namespace
}  // namespace octavo
