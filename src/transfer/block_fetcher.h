// The consumer's side: fetches blocks of other engines, on threads of its own.
//
// The blocks that are written belong to nobody else meanwhile: whoever posts a task keeps them for it until
// its result is there.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kv/block_pool.h"
#include "request/engine_stats.h"
#include "request/kv_transfer.h"
#include "request/request.h"
#include "transfer/block_format.h"
#include "transfer/peer_socket.h"
#include "transfer/transport.h"

namespace octavo {

struct FetchTask {
  RequestId id = 0;
  KvTransferParams from{};
  int first = 0;                // blocks [first, keys.size()) of the prompt are wanted
  std::vector<Hash128> keys{};  // of the prompt's blocks, from its first on
  std::vector<BlockId>
      blocks{};  // where block first + i goes; empty: none is wanted, the lease is given back
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // nobody wants them any more
};

struct FetchResult {
  RequestId id = 0;
  int fetched = 0;  // blocks first, first + 1, .. that are there
  std::int64_t bytes = 0;
  double seconds = 0;
  std::optional<KvTransferFailure> failure{};  // why there are no more
  std::string message{};
};

class BlockFetcher {
 public:
  // (block, contents) into the cache. Any thread.
  using WriteBlock = std::function<void(BlockId, std::span<const std::byte>)>;
  using OnResult = std::function<void(FetchResult)>;

  // done: on a fetching thread, once for each task that wants blocks. shared_memory: false: TCP alone.
  BlockFetcher(BlockFormat format, bool shared_memory, WriteBlock write, OnResult done);
  // Ends fetches in progress; what waits is forgotten, and `done` not called for it.
  ~BlockFetcher();

  void post(FetchTask task);  // never waits

 private:
  static constexpr int kThreads = 4;

  struct Worker {
    std::optional<TransferSlots> slots;  // of its thread alone
    const PeerSocket* socket = nullptr;  // while it is connected; under mutex_
    std::thread thread;
  };

  void run(Worker& worker);
  Result<> fetch(Worker& worker, const FetchTask& task, FetchResult& result);
  Result<> fetch_over(Worker& worker, PeerSocket& socket, const FetchTask& task, FetchResult& result);
  Result<> take(const FetchTask& task, std::span<const std::byte> packed, FetchResult& result);
  bool set_socket(Worker& worker, const PeerSocket* socket);

  const BlockFormat format_;
  const bool shared_memory_;
  const WriteBlock write_;
  const OnResult done_;

  std::mutex mutex_;  // guards all below
  std::condition_variable came_;
  std::deque<FetchTask> tasks_;
  bool stopping_ = false;

  std::array<Worker, kThreads> workers_;
};

}  // namespace octavo
