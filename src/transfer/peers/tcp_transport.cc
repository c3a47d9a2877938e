// Transport in which the blocks follow the Piece messages on the TCP connection.
#include <vector>

#include "transfer/peers/transport.h"

namespace octavo {
namespace {

class TcpSender final : public BlockSender {
 public:
  explicit TcpSender(PeerSocket& socket) : socket_(socket) {}

  // All slots share one buffer: send() has copied it to the socket before the next slot is filled.
  std::span<std::byte> slot(int, std::size_t bytes) override {
    bytes_.resize(bytes);
    return bytes_;
  }
  Result<> send(std::span<const std::byte> slot) override { return socket_.send(slot); }

 private:
  PeerSocket& socket_;
  std::vector<std::byte> bytes_;
};

class TcpReceiver final : public BlockReceiver {
 public:
  TcpReceiver(const TransferSlots& slots, PeerSocket& socket) : slots_(slots), socket_(socket) {}

  Result<std::span<const std::byte>> receive(int number, std::size_t bytes) override {
    const std::span<std::byte> slot = slots_.slot(number, bytes);
    TRY_VOID(socket_.receive(slot));
    return slot;
  }

 private:
  const TransferSlots& slots_;
  PeerSocket& socket_;
};

}  // namespace

std::unique_ptr<BlockSender> tcp_sender(PeerSocket& socket) { return std::make_unique<TcpSender>(socket); }

std::unique_ptr<BlockReceiver> tcp_receiver(const TransferSlots& slots, PeerSocket& socket) {
  return std::make_unique<TcpReceiver>(slots, socket);
}

}  // namespace octavo
