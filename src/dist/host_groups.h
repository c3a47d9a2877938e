// The groups of an engine's ranks on one host, in one block of shared memory.
//
// With several stages, several steps are in flight. Two conditions prevent a deadlock. First, a stage always
// finds a free slot for its output, even if the next stage is several steps late. Second, rank 0, which is in
// the last stage, can send all messages for the steps in flight before another rank reads one. If the output
// of a stage is larger than a slot, the stage reads messages only after rank 0 has taken the output.
#pragma once

#include <functional>

#include "dist/rank_layout.h"

namespace octavo {

struct HostGroupsOptions {
  RankLayout layout{};
  int rank = 0;
  std::function<Result<>()> check = {};  // see SharedMemoryGroupOptions, also for spin
  bool spin = true;
  // Slot sizes in bytes with several stages: for messages to all ranks, and for a stage's output of one step.
  // Pages that are never written use no memory.
  std::size_t told_bytes = std::size_t{16} << 20;
  std::size_t handed_on_bytes = std::size_t{64} << 20;
};

// Returns the bytes of memory for options.layout, which are equal on all ranks.
std::size_t host_groups_bytes(const HostGroupsOptions& options);

// memory: host_groups_bytes(options) bytes, initially zero, shared by all ranks. It must outlive the groups.
RankGroups host_groups(std::span<std::byte> memory, const HostGroupsOptions& options);

}  // namespace octavo
