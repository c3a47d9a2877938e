// How the bytes of blocks get from one engine to another, once the two have agreed over their connection. One
// file for each way. The consumer owns the memory: a few slots, so that one fills while another is read.
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
inline constexpr std::size_t kPieceBytes = std::size_t{512}
                                           << 10;  // which fit in a cache; one block where that is larger

// Blocks of a piece, and the bytes of a slot.
inline int piece_blocks(const BlockFormat& format) {
  return static_cast<int>(std::max<std::size_t>(1, kPieceBytes / format.stride()));
}
inline std::size_t slot_bytes(const BlockFormat& format) {
  return format.stride() * static_cast<std::size_t>(piece_blocks(format));
}

// At the producer, for one connection.
class BlockSender {
 public:
  virtual ~BlockSender() = default;
  // Where the blocks of a slot are to be written.
  virtual std::span<std::byte> slot(int number, std::size_t bytes) = 0;
  // They are, and the consumer knows. Errors: io.
  virtual Result<> send(std::span<const std::byte> slot) = 0;
};

// At the consumer.
class BlockReceiver {
 public:
  virtual ~BlockReceiver() = default;
  // The blocks of a slot, which the producer says are written. Errors: io.
  virtual Result<std::span<const std::byte>> receive(int number, std::size_t bytes) = 0;
};

// The consumer's slots. Shared memory in any case; who else can open it is found out by trying.
class TransferSlots {
 public:
  // Errors: io.
  static Result<TransferSlots> create(std::size_t slot_bytes);
  std::span<std::byte> slot(int number, std::size_t bytes) const;
  SegmentOffer offer() const;

 private:
  SharedMemory memory_;
  std::size_t slot_bytes_ = 0;
};

// Null: this process cannot open the segment, which is of another host, of another container or of nobody.
std::unique_ptr<BlockSender> shared_memory_sender(const SegmentOffer& offer);
std::unique_ptr<BlockReceiver> shared_memory_receiver(const TransferSlots& slots);

std::unique_ptr<BlockSender> tcp_sender(PeerSocket& socket);
std::unique_ptr<BlockReceiver> tcp_receiver(const TransferSlots& slots, PeerSocket& socket);

}  // namespace octavo
