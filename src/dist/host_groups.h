// The groups of an engine's ranks on one host, in one piece of shared memory.
//
// With several stages, several steps are in flight. Two conditions prevent a deadlock. First, the output of a
// stage always finds a free slot, even if the next stage is several steps late. Second, rank 0, in the last
// stage, can send all messages about the steps in flight before another rank reads one. A stage whose output
// exceeds a slot reads messages only after rank 0 has taken the output.
#pragma once

#include <functional>

#include "dist/rank_layout.h"

namespace octavo {

struct HostGroupsOptions {
  RankLayout layout{};
  int rank = 0;
  std::function<Result<>()> check = {};  // this and spin: as in SharedMemoryGroupOptions
  bool spin = true;
  // Slot sizes with several stages: messages to all ranks, and output of a stage per step. Unwritten pages
  // use no memory.
  std::size_t told_bytes = std::size_t{16} << 20;
  std::size_t handed_on_bytes = std::size_t{64} << 20;
};

// Size for options.layout, equal on all ranks.
std::size_t host_groups_bytes(const HostGroupsOptions& options);

// memory: host_groups_bytes(options) bytes, initially zero, shared by all ranks. It must outlive the groups.
RankGroups host_groups(std::span<std::byte> memory, const HostGroupsOptions& options);

}  // namespace octavo
