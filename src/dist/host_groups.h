// The groups of an engine's ranks on one host, in one piece of shared memory.
//
// With several stages some steps are on their way at once, and two things must hold, or ranks wait for each
// other without end. What a stage hands on finds a slot although the stage behind is some steps back. And
// rank 0, in the last stage, can say all it has to say of the steps on their way before any of it is heard: a
// stage that hands on more than a slot holds listens only when rank 0 has taken it.
#pragma once

#include <functional>

#include "dist/rank_layout.h"

namespace octavo {

struct HostGroupsOptions {
  RankLayout layout{};
  int rank = 0;
  std::function<Result<>()> check = {};  // as SharedMemoryGroupOptions', these two
  bool spin = true;
  // With several stages: of a slot for what all are told, and of one for what a stage hands on in a step.
  // Memory that nobody writes to costs nothing.
  std::size_t told_bytes = std::size_t{16} << 20;
  std::size_t handed_on_bytes = std::size_t{64} << 20;
};

// Of options.layout, the same for all ranks.
std::size_t host_groups_bytes(const HostGroupsOptions& options);

// memory: host_groups_bytes(options), zeros at first, the same for all ranks; must live longer.
RankGroups host_groups(std::span<std::byte> memory, const HostGroupsOptions& options);

}  // namespace octavo
