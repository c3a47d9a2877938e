// The processes of an engine's ranks, and how they reach each other: over shared memory where all are
// children of rank 0 on this host, over TCP where nodes are given, over MPI where mpirun has started them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dist/host_groups.h"
#include "dist/mpi_plugin.h"
#include "dist/shared_memory.h"
#include "engine/engine_options.h"
#include "remote/child_process.h"

namespace octavo {

// Whether an engine can have the ranks that the options ask for. Errors: unsupported, what ranks cannot do
// yet; invalid, hosts that do not divide them.
Result<> check_ranks(const EngineOptions& options);

// What must be the same on all hosts of an engine, or of a server's engines: what the model is, how it is
// divided, its cache, and the room that steps have. Errors: the model's files cannot be read.
Result<std::string> hosts_identity(const EngineOptions& options);

class Ranks {
 public:
  // Rank 0's side. Starts the other ranks of this host, which end with it: `command`, followed by the rank;
  // and waits for those of other hosts. Errors: io; unsupported without a command; see TcpTransport and
  // open_mpi_transport.
  static Result<std::unique_ptr<Ranks>> start(const EngineOptions& options,
                                              const std::vector<std::string>& command);
  // The side of another rank. Errors: the same; this process is none.
  static Result<std::unique_ptr<Ranks>> join(const EngineOptions& options, int rank);
  ~Ranks();

  int rank() const { return rank_; }
  const RankLayout& layout() const { return layout_; }
  RankGroups& groups() { return groups_; }
  const RankGroups& groups() const { return groups_; }
  // Over shared memory: the others are rank 0's children.
  bool on_one_host() const { return transport_ == nullptr; }
  // Whether those are there that this rank can know of. Any thread.
  Result<> check();

  // Says how this rank's start went, and waits for the others to say so; the timeout of a running engine
  // holds from now on. Errors: this rank's own; on rank 0, what the first says that is not ready, or that it
  // has ended.
  Result<> agree(const Result<>& own);

 private:
  Ranks(const EngineOptions& options, int rank);
  Result<> start_children(int count, const std::vector<std::string>& command, std::span<const int> shared);
  Result<> connect(const EngineOptions& options);
  HostGroupsOptions on_this_host();

  RankLayout layout_;
  int rank_;
  int timeout_ms_;
  std::size_t handed_on_bytes_;  // room for what a stage hands on in a step
  std::mutex children_mutex_;
  std::vector<remote::ChildProcess> children_;  // of rank 0: rank 1 first
  SharedMemory memory_;
  std::unique_ptr<Transport> transport_;
  RankGroups groups_;
};

}  // namespace octavo
