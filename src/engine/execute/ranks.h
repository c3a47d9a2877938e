// Starts and connects the processes of an engine's ranks. The transport is shared memory if all ranks are
// children of rank 0 on this host, TCP if nodes are given, and MPI under mpirun. If engines share experts,
// all their ranks also form one group over TCP. When a rank ends, its connections close, and all other
// ranks end, too.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dist/host_groups.h"
#include "dist/mpi_plugin.h"
#include "dist/shared_memory.h"
#include "dist/tcp_transport.h"
#include "engine/engine_options.h"
#include "remote/child_process.h"

namespace octavo {

// Checks that an engine can run with the number of ranks in the options. Returns unsupported if a feature
// does not work with several ranks, and invalid_argument if the number of ranks is not a multiple of the
// number of hosts.
Result<> check_ranks(const EngineOptions& options);

// Returns a text with the properties that must be equal on all hosts of an engine and in all engines of a
// server: the model, its partition, its cache and the limits of steps. Returns an error if the files of the
// model cannot be read.
Result<std::string> hosts_identity(const EngineOptions& options);

class Ranks {
 public:
  // Called on rank 0. Starts the other ranks of this host and waits for the ranks of other hosts. Each rank
  // runs `command` with its rank appended, and ends when this object is destroyed. Returns io if a process
  // cannot be started, unsupported if there is no command, and the errors of TcpTransport and
  // open_mpi_transport.
  static Result<std::unique_ptr<Ranks>> start(const EngineOptions& options,
                                              const std::vector<std::string>& command);
  // Called on the other ranks. Returns the errors of start(), and an error if this process is not a rank.
  static Result<std::unique_ptr<Ranks>> join(const EngineOptions& options, int rank);
  ~Ranks();

  int rank() const { return rank_; }
  const RankLayout& layout() const { return layout_; }
  RankGroups& groups() { return groups_; }
  const RankGroups& groups() const { return groups_; }
  // Returns true if all ranks are children of rank 0 and communicate over shared memory.
  bool on_one_host() const { return transport_ == nullptr; }
  // Checks that the ranks to which this rank has a connection are alive. Thread-safe.
  Result<> check();

  // Time in ms after which a step counts as hung if the devices wait for each other.
  int step_timeout_ms() const { return step_timeout_ms_; }

  // Returns the connections to all ranks of the engines that share experts; null: the engine shares no
  // experts.
  const TcpTransport* engines() const { return engines_.get(); }

  // Reports the result of this rank's start, as all_succeed() does. Afterwards, the timeout of a running
  // engine applies.
  Result<> agree(const Result<>& own);
  // All ranks must call it. Returns the failure of this rank, otherwise the first failure of another rank.
  Result<> all_succeed(const Result<>& own);
  // All ranks must call it. Returns the smallest value of all ranks.
  Result<std::int64_t> least(std::int64_t own);

 private:
  Ranks(const EngineOptions& options, int rank);
  Result<> start_children(int count, const std::vector<std::string>& command, std::span<const int> shared);
  Result<> connect(const EngineOptions& options);
  Result<> meet_engines(const EngineOptions& options);
  HostGroupsOptions on_this_host();

  RankLayout layout_;
  int rank_;
  int timeout_ms_, step_timeout_ms_;
  std::size_t handed_on_bytes_;
  std::mutex children_mutex_;
  // Processes of the other ranks, from rank 1 on. Empty except on rank 0.
  std::vector<remote::ChildProcess> children_;
  SharedMemory memory_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TcpTransport> engines_;  // null: the engine does not share experts with other engines
  RankGroups groups_;
};

}  // namespace octavo
