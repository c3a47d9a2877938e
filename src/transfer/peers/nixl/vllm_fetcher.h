// Fetches KV blocks from the prefill servers of vLLM's NixlConnector (consumer side). The consumer reads the
// blocks from the memory of the other engine by NIXL. Then it notifies the other engine, which frees them:
//
//   "<request id>:1"              this request needs the blocks no longer; 1 consumer has read them
//   "HB:<request id>,<request id>" the requests still need their blocks
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transfer/block_format.h"
#include "transfer/peer_socket.h"
#include "transfer/peers/fetcher.h"
#include "transfer/peers/load_queue.h"
#include "transfer/peers/nixl/nixl_agent.h"
#include "transfer/peers/nixl/vllm_blocks.h"

namespace octavo {

class VllmFetcher final : public Fetcher {
 public:
  // allocate: host memory for copies of blocks.
  VllmFetcher(BlockFormat format, std::unique_ptr<NixlAgent> agent,
              std::function<Result<Buffer>(std::size_t)> allocate, WriteBlock write, OnResult done,
              const PeerTimes& times = {});
  ~VllmFetcher() override;

  void post(LoadTask task) override { queue_.post(std::move(task)); }
  Result<> renew(const std::string& host, int port, const std::vector<std::string>& leases) override;

 private:
  // An engine that has answered the handshake.
  struct Peer {
    std::string engine_id;
    NixlSource source;
    std::int64_t blocks_of_an_id;
    std::vector<VllmRegion> regions;
    VllmBlocks blocks;
  };
  using Address = std::pair<std::string, int>;

  Result<std::shared_ptr<const Peer>> connect(const Address& address, const std::string& engine_id);
  void forget(const Address& address, const std::shared_ptr<const Peer>& peer);
  Result<> fetch(std::size_t worker, const LoadTask& task, LoadResult& result);
  Result<> fetch_from(const Peer& peer, std::unique_ptr<NixlBuffer>& buffer, const LoadTask& task,
                      LoadResult& result);
  Result<> prepare(std::unique_ptr<NixlBuffer>& buffer, std::size_t bytes);
  Result<> read_blocks(const Peer& peer, const NixlBuffer& buffer, const LoadTask& task, std::size_t first,
                       std::size_t count);

  const BlockFormat format_;
  const PeerTimes times_;
  const std::unique_ptr<NixlAgent> agent_;
  const std::function<Result<Buffer>(std::size_t)> allocate_;
  const WriteBlock write_;

  std::mutex mutex_;  // guards peers_
  std::map<Address, std::shared_ptr<const Peer>> peers_;
  // destination of each thread's reads; only that thread uses it
  std::array<std::unique_ptr<NixlBuffer>, LoadQueue::kThreads> buffers_;
  LoadQueue queue_;  // the last member, because its threads use the others
};

}  // namespace octavo
