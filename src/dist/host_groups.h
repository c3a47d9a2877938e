// The process groups of an engine whose ranks are on one host. All groups are in one block of shared
// memory.
//
// With several pipeline stages, several steps are in flight. Two conditions prevent a deadlock. First, a
// stage always finds a free slot for its output, even if the next stage is several steps late. Second, rank
// 0, which is in the last stage, can send the messages of all steps in flight before another rank reads
// one. If the output of a stage is larger than a slot, the stage reads messages only after rank 0 has
// received the output.
#pragma once

#include <functional>

#include "dist/rank_layout.h"

namespace octavo {

struct HostGroupsOptions {
  RankLayout layout{};
  int rank = 0;
  std::function<Result<>()> check = {};  // check and spin: see SharedMemoryGroupOptions
  bool spin = true;
  // Slot sizes in bytes with several stages: order_bytes for messages to all ranks, and handed_on_bytes for
  // the output of a stage in one step. Pages that are never written use no memory.
  std::size_t order_bytes = std::size_t{16} << 20;
  std::size_t handed_on_bytes = std::size_t{64} << 20;
};

// Returns the size in bytes of the memory for options.layout. The size is equal on all ranks.
std::size_t host_groups_bytes(const HostGroupsOptions& options);

// `memory` has host_groups_bytes(options) bytes, which are initially zero and shared by all ranks. It must
// outlive the groups.
RankGroups host_groups(std::span<std::byte> memory, const HostGroupsOptions& options);

}  // namespace octavo
