// The ranks of a tensor-parallel engine: one process each on this host, rank 0 the one that has the others as
// children. Their group is shared memory; a socket to each child only tells that the other end is there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "remote/child_process.h"

namespace octavo {

// Rank 0's side. The others end with it.
class RankProcesses {
 public:
  // Starts the ranks 1 to size - 1: `command`, followed by the rank. Errors: io; unsupported without a command.
  static Result<std::unique_ptr<RankProcesses>> start(int size, const std::vector<std::string>& command);
  ~RankProcesses();

  SharedMemoryGroup& group() { return *group_; }
  // Waits for every rank to say that it is ready, and gives them all the timeout of a running engine. Errors:
  // what the first that is not says, or that it has ended.
  Result<> agree();

 private:
  RankProcesses() = default;
  Result<> check();

  SharedMemory memory_;
  std::vector<remote::ChildProcess> children_;  // rank 1 first
  std::unique_ptr<SharedMemoryGroup> group_;
};

// The side of such a child.
class JoinedRank {
 public:
  // Errors: this process is none.
  static Result<std::unique_ptr<JoinedRank>> join(int rank, int size);

  SharedMemoryGroup& group() { return *group_; }
  // Says how its start went, and returns that.
  Result<> agree(const Result<>& ready);

 private:
  JoinedRank() = default;

  SharedMemory memory_;
  std::unique_ptr<SharedMemoryGroup> group_;
};

}  // namespace octavo
