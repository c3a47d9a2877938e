// Transports for the bytes of blocks. Two engines first agree on one transport over their connection. Each
// transport is one file. The consumer owns the memory, which has a few slots, so that one slot can be filled
// while another is read.
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
inline constexpr std::size_t kPieceBytes = std::size_t{512}  // slot size that fits into a CPU cache; larger
                                                             // if one block is larger
                                           << 10;

inline int piece_blocks(const BlockFormat& format) {
  return static_cast<int>(std::max<std::size_t>(1, kPieceBytes / format.stride()));
}
inline std::size_t slot_bytes(const BlockFormat& format) {
  return format.stride() * static_cast<std::size_t>(piece_blocks(format));
}

// Producer side of one connection.
class BlockSender {
 public:
  virtual ~BlockSender() = default;
  // Returns the memory of slot `number`, for blocks.
  virtual std::span<std::byte> slot(int number, std::size_t bytes) = 0;
  // Sends or announces a slot that was written. Returns io if the connection fails.
  virtual Result<> send(std::span<const std::byte> slot) = 0;
};

// Consumer side of one connection.
class BlockReceiver {
 public:
  virtual ~BlockReceiver() = default;
  // Returns the blocks that the producer has written to a slot, or io.
  virtual Result<std::span<const std::byte>> receive(int number, std::size_t bytes) = 0;
};

// Slots of the consumer, in shared memory that the producer tries to open.
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

// Returns null if this process cannot open the memory, for example because it runs on another host or in
// another container.
std::unique_ptr<BlockSender> shared_memory_sender(const SegmentOffer& offer);
std::unique_ptr<BlockReceiver> shared_memory_receiver(const TransferSlots& slots);

std::unique_ptr<BlockSender> tcp_sender(PeerSocket& socket);
std::unique_ptr<BlockReceiver> tcp_receiver(const TransferSlots& slots, PeerSocket& socket);

}  // namespace octavo
