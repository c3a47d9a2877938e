// Consumer side: fetches blocks from other engines, on separate threads.
//
// The caller of post() must keep the task's destination blocks reserved until the result arrives.
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
  // Writes contents into the cache; called with (piece, contents). Any thread.
  using WriteBlock = std::function<void(KvPlace, std::span<const std::byte>)>;
  using OnResult = std::function<void(LoadResult)>;

  // done: called on a fetching thread, once for each task that has blocks. one_host: whether shared memory
  // may be used between processes of one host; otherwise TCP. ucx: whether UCX is used for native blocks if
  // the producer supports it.
  BlockFetcher(BlockFormat format, bool one_host, bool ucx, WriteBlock write, NativeBlocks native,
               OnResult done, const PeerTimes& times = {});
  // Ends running fetches and removes waiting ones, without calling `done`.
  ~BlockFetcher();

  void post(LoadTask task);  // never waits; a task without blocks only ends the lease

 private:
  static constexpr int kThreads = 4;

  struct Worker {
    std::optional<TransferSlots> slots;  // used only by this worker's thread
    std::unique_ptr<UcxChannel> ucx;     // used only by this worker's thread
    const PeerSocket* socket = nullptr;  // socket of the current connection, or null; guarded by mutex_
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
  const Hash128 digest_;  // digest of format_
  const bool one_host_, ucx_;
  const PeerTimes times_;
  const WriteBlock write_;
  const NativeBlocks native_;
  const OnResult done_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable came_;
  std::deque<LoadTask> tasks_;
  bool stopping_ = false;

  std::array<Worker, kThreads> workers_;
};

}  // namespace octavo
