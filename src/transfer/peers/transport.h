// Transports that carry packed blocks between engines: shared memory, or the TCP connection. Each transport
// is one file. The consumer owns the memory. It has several slots, so that the producer can fill one while
// the consumer reads another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "dist/shared_memory.h"
#include "transfer/peer_socket.h"
#include "transfer/peers/messages.h"

namespace octavo {

inline constexpr int kTransferSlots = 4;
// A slot holds the number of blocks that fit into this size, but at least one block. The size fits into a CPU
// cache.
inline constexpr std::size_t kPieceBytes = std::size_t{512} << 10;

inline int piece_blocks(const BlockFormat& format) {
  return static_cast<int>(std::max<std::size_t>(1, kPieceBytes / format.stride()));
}
inline std::size_t slot_bytes(const BlockFormat& format) {
  return format.stride() * static_cast<std::size_t>(piece_blocks(format));
}

class BlockSender {
 public:
  virtual ~BlockSender() = default;
  // Returns the memory to write the blocks of slot `number` to.
  virtual std::span<std::byte> slot(int number, std::size_t bytes) = 0;
  // Sends the blocks, or does nothing if the consumer shares the memory. Returns io if the connection
  // fails.
  virtual Result<> send(std::span<const std::byte> slot) = 0;
};

class BlockReceiver {
 public:
  virtual ~BlockReceiver() = default;
  // Returns the blocks that the producer has written to the slot, or io.
  virtual Result<std::span<const std::byte>> receive(int number, std::size_t bytes) = 0;
};

// Shared memory of the consumer. The producer opens it if it runs on the same host.
class TransferSlots {
 public:
  // Returns io if shared memory cannot be created.
  static Result<TransferSlots> create(std::size_t slot_bytes);
  std::span<std::byte> slot(int number, std::size_t bytes) const;
  SegmentOffer offer() const;

 private:
  SharedMemory memory_;
  std::size_t slot_bytes_ = 0;
};

// Returns null if this process cannot open the memory, for example because it runs in another container.
std::unique_ptr<BlockSender> shared_memory_sender(const SegmentOffer& offer);
std::unique_ptr<BlockReceiver> shared_memory_receiver(const TransferSlots& slots);

std::unique_ptr<BlockSender> tcp_sender(PeerSocket& socket);
std::unique_ptr<BlockReceiver> tcp_receiver(const TransferSlots& slots, PeerSocket& socket);

}  // namespace octavo
