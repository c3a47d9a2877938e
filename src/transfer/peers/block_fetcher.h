// Fetches KV blocks from other engines on separate threads (consumer side of a transfer). PeerConnector
// uses it. The caller of post() must reserve the task's destination blocks until `done` reports the result.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "transfer/block_format.h"
#include "transfer/kv_connector.h"
#include "transfer/native_blocks.h"
#include "transfer/peer_socket.h"
#include "transfer/peers/messages.h"
#include "transfer/peers/transport.h"
#include "transfer/peers/ucx_plugin.h"

namespace octavo {

class BlockFetcher {
 public:
  // Writes the contents of a piece into the cache. Any thread calls it.
  using WriteBlock = std::function<void(KvLocation, std::span<const std::byte>)>;
  using OnResult = std::function<void(LoadResult)>;

  // The fetching threads call `done` once for each task that has blocks. If `one_host` is false, producers on
  // the same host use TCP, too, instead of shared memory. If `ucx` is true, native blocks are sent over UCX
  // if the producer also has UCX.
  BlockFetcher(BlockFormat format, bool one_host, bool ucx, WriteBlock write, NativeBlocks native,
               OnResult done, const PeerTimes& times = {});
  // Stops running fetches and drops waiting tasks, without calling `done`.
  ~BlockFetcher();

  // Queues the task and returns at once. A task without blocks only ends its lease.
  void post(LoadTask task);

 private:
  static constexpr int kThreads = 4;

  struct Worker {
    std::optional<TransferSlots> slots;  // memory offered to producers; only the worker's thread uses it
    std::unique_ptr<UcxChannel> ucx;     // channel to the current producer; only the worker's thread uses it
    // current connection or null; guarded by mutex_
    const PeerSocket* socket = nullptr;
    std::thread thread;
  };

  void run(Worker& worker);
  Result<> fetch(Worker& worker, const LoadTask& task, LoadResult& result);
  Result<> fetch_over(Worker& worker, PeerSocket& socket, const LoadTask& task, LoadResult& result);
  BlockWay way_of(const Ready& ready) const;
  Result<> take_packed(const LoadTask& task, std::span<const std::byte> packed, LoadResult& result);
  Result<> take_native(PeerSocket& socket, UcxChannel* ucx, int count, const LoadTask& task,
                       LoadResult& result);
  bool set_socket(Worker& worker, const PeerSocket* socket);

  const BlockFormat format_;
  const Hash128 digest_;
  const bool one_host_, ucx_;
  const PeerTimes times_;
  const WriteBlock write_;
  const NativeBlocks native_;
  const OnResult done_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable arrived_;
  std::deque<LoadTask> tasks_;
  bool stopping_ = false;

  std::array<Worker, kThreads> workers_;
};

}  // namespace octavo
