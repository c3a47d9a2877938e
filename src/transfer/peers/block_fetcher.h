// Fetches KV blocks from other engines on separate threads (consumer side of a transfer). PeerConnector
// uses it. The caller of post() must reserve the task's destination blocks until `done` reports the result.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transfer/block_format.h"
#include "transfer/kv_connector.h"
#include "transfer/native_blocks.h"
#include "transfer/peer_socket.h"
#include "transfer/peers/fetcher.h"
#include "transfer/peers/load_queue.h"
#include "transfer/peers/messages.h"
#include "transfer/peers/transport.h"
#include "transfer/peers/ucx_plugin.h"

namespace octavo {

class BlockFetcher final : public Fetcher {
 public:
  // The fetching threads call `done` once for each task that has blocks. If `one_host` is false, producers on
  // the same host use TCP, too, instead of shared memory. If `ucx` is true, native blocks are sent over UCX
  // if the producer also has UCX.
  BlockFetcher(BlockFormat format, bool one_host, bool ucx, WriteBlock write, NativeBlocks native,
               OnResult done, const PeerTimes& times = {});
  ~BlockFetcher() override;

  void post(LoadTask task) override { queue_.post(std::move(task)); }
  Result<> renew(const std::string& host, int port, const std::vector<std::string>& leases) override;

 private:
  struct Worker {
    std::optional<TransferSlots> slots;  // memory offered to producers; only the worker's thread uses it
    std::unique_ptr<UcxChannel> ucx;     // channel to the current producer; only the worker's thread uses it
    // current connection or null; guarded by mutex_
    const PeerSocket* socket = nullptr;
  };

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

  std::mutex mutex_;  // guards the sockets of workers_
  std::array<Worker, LoadQueue::kThreads> workers_;
  LoadQueue queue_;  // the last member, because its threads use the others
};

}  // namespace octavo
