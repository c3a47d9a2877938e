// Processes of an engine's ranks and their transport: shared memory if all are children of rank 0 on this
// host, TCP if nodes are given, MPI under mpirun. Ranks of engines that share experts also have a group with
// all of these, over TCP: a rank that ends closes its connections, and so ends the others.
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

// Checks that an engine can have the ranks of the options. Errors: unsupported features of ranks; invalid,
// the number of ranks is not a multiple of the hosts.
Result<> check_ranks(const EngineOptions& options);

// Properties that all hosts of an engine, or all engines of a server, must share: the model, its partition,
// its cache and the limits of steps. Errors: the model's files cannot be read.
Result<std::string> hosts_identity(const EngineOptions& options);

class Ranks {
 public:
  // Rank 0: starts the other ranks of this host (`command` followed by the rank), which end with it, and
  // waits for those of other hosts. Errors: io; unsupported without a command; see TcpTransport and
  // open_mpi_transport.
  static Result<std::unique_ptr<Ranks>> start(const EngineOptions& options,
                                              const std::vector<std::string>& command);
  // Other ranks: joins. Errors: as start(); this process is not a rank.
  static Result<std::unique_ptr<Ranks>> join(const EngineOptions& options, int rank);
  ~Ranks();

  int rank() const { return rank_; }
  const RankLayout& layout() const { return layout_; }
  RankGroups& groups() { return groups_; }
  const RankGroups& groups() const { return groups_; }
  // True if ranks communicate over shared memory, as children of rank 0.
  bool on_one_host() const { return transport_ == nullptr; }
  // Checks that the ranks visible to this rank are alive. Any thread.
  Result<> check();

  // The connections to ranks of engines that share experts; null: none do.
  const TcpTransport* engines() const { return engines_.get(); }

  // Reports the result of this rank's start and waits for the others' results. Afterwards the timeout of a
  // running engine applies. Errors: this rank's own; on rank 0, the first failure of another rank, or its
  // end.
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
  std::size_t handed_on_bytes_;  // maximum size of a stage's output in a step
  std::mutex children_mutex_;
  std::vector<remote::ChildProcess> children_;  // rank 0 only: rank 1 first
  SharedMemory memory_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TcpTransport> engines_;  // null: no engine shares experts with this one
  RankGroups groups_;
};

}  // namespace octavo
