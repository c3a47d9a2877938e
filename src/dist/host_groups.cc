#include "dist/host_groups.h"

#include <bit>

#include "dist/shared_memory_group.h"

namespace octavo {
namespace {

SharedMemoryGroupOptions group_options(const HostGroupsOptions& options, std::size_t index,
                                       const std::vector<int>& members) {
  const RankLayout& layout = options.layout;
  SharedMemoryGroupOptions group{
      .rank = static_cast<int>(std::ranges::find(members, options.rank) - members.begin()),
      .size = static_cast<int>(members.size()),
      .check = options.check,
      .spin = options.spin,
      .names = members};
  if (layout.pipeline == 1) return group;
  const auto stages = static_cast<std::size_t>(layout.pipeline);
  if (index == 0) {
    // Each step has a message at its beginning and a message at its end, and there may be two other messages
    // per step.
    group.slots = std::bit_ceil(4 * stages);
    group.slot_bytes = options.order_bytes;
  } else if (layout.stage(members.front()) != layout.stage(members.back())) {
    group.slots = std::bit_ceil(stages);
    group.slot_bytes = options.handed_on_bytes;
  }
  return group;
}

std::size_t bytes_of(const SharedMemoryGroupOptions& group) {
  return SharedMemoryGroup::memory_bytes(group.size, group.slot_bytes, group.slots);
}

}  // namespace

std::size_t host_groups_bytes(const HostGroupsOptions& options) {
  std::size_t bytes = 0;
  const std::vector<std::vector<int>> groups = options.layout.groups();
  for (std::size_t i = 0; i < groups.size(); ++i) bytes += bytes_of(group_options(options, i, groups[i]));
  return bytes;
}

RankGroups host_groups(std::span<std::byte> memory, const HostGroupsOptions& options) {
  std::vector<std::span<std::byte>> slots;
  const std::vector<std::vector<int>> groups = options.layout.groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t bytes = bytes_of(group_options(options, i, groups[i]));
    slots.push_back(memory.first(bytes));
    memory = memory.subspan(bytes);
  }
  return make_groups(options.layout, options.rank, [&](std::size_t i, const std::vector<int>& members) {
    return std::make_unique<SharedMemoryGroup>(slots[i], group_options(options, i, members));
  });
}

}  // namespace octavo
