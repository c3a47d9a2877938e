// Processes of an engine's ranks and their transport: shared memory if all ranks are children of rank 0
// on this host, TCP if nodes are given, MPI under mpirun. If engines share experts, all their ranks also
// form one group over TCP. A rank that ends closes its connections, and this ends the other ranks.
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

// Checks that an engine can run with the number of ranks in the options. Errors: unsupported features of
// ranks; invalid, the number of ranks is not a multiple of the number of hosts.
Result<> check_ranks(const EngineOptions& options);

// Text of the properties that must be equal on all hosts of an engine, and in all engines of a server:
// the model, its partition, its cache and the limits of steps. Errors: the model's files cannot be read.
Result<std::string> hosts_identity(const EngineOptions& options);

class Ranks {
 public:
  // Rank 0: starts the other ranks of this host and waits for the ranks of other hosts. Each rank runs
  // `command` with its number appended, and ends with this object. Errors: io; unsupported without a
  // command; see TcpTransport and open_mpi_transport.
  static Result<std::unique_ptr<Ranks>> start(const EngineOptions& options,
                                              const std::vector<std::string>& command);
  // Other ranks: joins the engine. Errors: as start(); this process is not a rank.
  static Result<std::unique_ptr<Ranks>> join(const EngineOptions& options, int rank);
  ~Ranks();

  int rank() const { return rank_; }
  const RankLayout& layout() const { return layout_; }
  RankGroups& groups() { return groups_; }
  const RankGroups& groups() const { return groups_; }
  // True if all ranks are children of rank 0 and communicate over shared memory.
  bool on_one_host() const { return transport_ == nullptr; }
  // Checks that the ranks visible to this rank are alive. Any thread.
  Result<> check();

  // Connections to all ranks of the engines that share experts; null: experts are not shared.
  const TcpTransport* engines() const { return engines_.get(); }

  // Reports the result of this rank's start and waits for the results of the others. Afterwards the
  // timeout of a running engine applies. Errors: this rank's own failure; on rank 0, also the first failure
  // or end of another rank.
  Result<> agree(const Result<>& own);

 private:
  Ranks(const EngineOptions& options, int rank);
  Result<> start_children(int count, const std::vector<std::string>& command, std::span<const int> shared);
  Result<> connect(const EngineOptions& options);
  Result<> meet_engines(const EngineOptions& options);
  HostGroupsOptions on_this_host();

  RankLayout layout_;
  int rank_;
  int timeout_ms_;
  std::size_t handed_on_bytes_;  // maximum bytes that a stage sends to the next one in a step
  std::mutex children_mutex_;
  std::vector<remote::ChildProcess> children_;  // rank 0 only: rank 1 is the first element
  SharedMemory memory_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TcpTransport> engines_;  // null: no engine shares experts with this one
  RankGroups groups_;
};

}  // namespace octavo
