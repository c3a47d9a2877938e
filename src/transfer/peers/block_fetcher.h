// The consumer's side: fetches blocks of other engines, on threads of its own.
//
// The blocks that are written belong to nobody else meanwhile: whoever posts a task keeps them for it until
// its result is there.
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
  // (block, contents) into the cache. Any thread.
  using WriteBlock = std::function<void(KvPlace, std::span<const std::byte>)>;
  using OnResult = std::function<void(LoadResult)>;

  // done: on a fetching thread, once for each task that wants blocks. one_host: false: everything goes over
  // TCP, also between processes of one host. ucx: native blocks go over UCX, where the producer has it.
  BlockFetcher(BlockFormat format, bool one_host, bool ucx, WriteBlock write, NativeBlocks native,
               OnResult done, const PeerTimes& times = {});
  // Ends fetches in progress; what waits is forgotten, and `done` not called for it.
  ~BlockFetcher();

  void post(LoadTask task);  // never waits; without blocks: the lease is given back

 private:
  static constexpr int kThreads = 4;

  struct Worker {
    std::optional<TransferSlots> slots;  // of its thread alone
    std::unique_ptr<UcxChannel> ucx;     // as well
    const PeerSocket* socket = nullptr;  // while it is connected; under mutex_
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
  const Hash128 digest_;  // of the format
  const bool one_host_, ucx_;
  const PeerTimes times_;
  const WriteBlock write_;
  const NativeBlocks native_;
  const OnResult done_;

  std::mutex mutex_;  // guards all below
  std::condition_variable came_;
  std::deque<LoadTask> tasks_;
  bool stopping_ = false;

  std::array<Worker, kThreads> workers_;
};

}  // namespace octavo
