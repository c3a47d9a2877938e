// Sends leased KV blocks to other engines (producer side of a transfer). Each connection serves one fetch, on
// a separate thread with the protocol of messages.h. The thread can read the blocks while steps run, because
// steps do not write to leased blocks.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "transfer/block_format.h"
#include "transfer/native_blocks.h"
#include "transfer/peer_socket.h"
#include "transfer/peers/lease_table.h"
#include "transfer/peers/messages.h"
#include "transfer/peers/transport.h"
#include "transfer/peers/ucx_plugin.h"

namespace octavo {

struct BlockServerOptions {
  std::string host{};
  int port = 0;  // 0: the operating system chooses
  std::string engine_id{};
  BlockFormat format{};
};

class BlockServer {
 public:
  // Copies the contents of a piece (block_format.h) to the span. Any thread calls it.
  using ReadBlock = std::function<void(KvLocation, std::span<std::byte>)>;

  // Starts to listen. on_finished: called on any thread after a consumer has fetched the blocks of a lease.
  // Returns an error if the address is in use.
  static Result<std::unique_ptr<BlockServer>> start(BlockServerOptions options, LeaseTable& leases,
                                                    ReadBlock read, NativeBlocks native,
                                                    std::function<void()> on_finished);
  ~BlockServer();

  int port() const { return options_.port; }

 private:
  struct Connection {
    explicit Connection(int fd) : socket(fd) {}
    PeerSocket socket;
    std::thread thread;
    bool over = false;  // guarded by mutex_
  };

  BlockServer(BlockServerOptions options, LeaseTable& leases, ReadBlock read, NativeBlocks native,
              std::function<void()> on_finished);

  // Copies piece n of the prompt to the span.
  using ReadNumber = std::function<void(std::size_t, std::span<std::byte>)>;

  void accept_all();
  void drop_ended();
  void serve(PeerSocket& socket);
  Result<> answer(PeerSocket& socket);
  Result<> keep_leases(PeerSocket& socket, Keep next);
  Result<> give_blocks(PeerSocket& socket, const Pull& pull);
  Result<> give_pieces(PeerSocket& socket, const Pull& pull, const Lease& lease);
  Result<> give_packed(PeerSocket& socket, const BlockFormat& format, std::span<const Hash128> keys,
                       const ReadNumber& read, const Get& get, BlockSender& sender);
  Result<> give_native(PeerSocket& socket, const Lease& lease, const Get& get, UcxChannel* ucx);
  std::string refusal(const Pull& pull, KvTransferFailure& reason);
  void finish(const std::string& id);

  BlockServerOptions options_;
  LeaseTable& leases_;
  const ReadBlock read_;
  const NativeBlocks native_;
  const Hash128 digest_;
  const std::function<void()> on_finished_;
  int listening_ = -1;

  std::mutex mutex_;  // guards all members below
  std::list<Connection> connections_;
  bool stopping_ = false;

  std::thread accepting_;
};

}  // namespace octavo
