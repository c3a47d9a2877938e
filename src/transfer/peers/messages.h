// Protocol between the engine that decodes (consumer) and the engine that computed the prompt (producer).
//
//   consumer              producer
//   Pull           ->                 lease id, model, number of blocks
//                  <-     Ready       transports for the bytes
//   Get            ->                 blocks [first, first + count) and a transport; Gets may overlap
//                  <-     Piece       the blocks are written, or follow
//   Done           ->                 end of the lease
//
// Without a Pull, a connection has one Done message (the consumer needs no blocks), or only Keep messages,
// which renew one lease each. Packed blocks (block_format.h) are written to the slot that Get names, or
// follow the Piece message on the connection (transport.h). For native blocks (native_blocks.h), the headers
// follow the Piece message. The contents of the blocks follow the headers, or are sent over UCX. A lease does
// not expire between its Pull and the end of that connection. Keep messages do not have this effect: the
// lease expires if the next Keep is late.
//
// The producer may send Refused at any time, and then closes the connection. A frame is its size in bytes
// (u32), the version (u64, a hash of the types of all fields below) and a TransferMessage (base/pack.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/hash.h"
#include "request/engine_stats.h"
#include "transfer/block_format.h"
#include "transfer/peer_socket.h"

namespace octavo {

// Shared memory of the consumer, which a process on the same host can open. If slot_bytes is 0, the consumer
// offers no memory.
struct SegmentOffer {
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::int64_t slot_bytes = 0;
  // random text at the start of the memory; the producer checks it
  std::string secret{};
};

struct Pull {
  BlockFormat format{};
  std::string engine_id{};
  std::string request_id{};
  // number of leading pieces (kv_pieces.h) of the prompt, in the consumer's format
  int blocks = 0;
  Hash128 key{};  // key of the last of these pieces
  SegmentOffer segment{};
  std::string ucx{};  // address of the consumer's channel; "": no UCX
};
struct Ready {
  int blocks = 0;  // number of available pieces, counted from the first requested piece
  // whether packed blocks are written to the consumer's slots
  bool shared_memory = false;
  std::string layout{};        // layout of native blocks; "": blocks are packed
  // whether the contents of native blocks are sent over UCX
  bool ucx = false;
};
enum class BlockWay : std::uint8_t { packed, native };
inline constexpr std::string_view kBlockWayNames[] = {"packed", "native"};
struct Get {
  int first = 0;
  int count = 0;
  int slot = 0;  // index of the consumer's slot for packed blocks
  BlockWay way = BlockWay::packed;
};
struct Piece {
  int first = 0;
  int count = 0;
};
struct Done {
  std::string request_id{};
};
struct Keep {
  std::string request_id{};
};
struct Refused {
  KvTransferFailure reason = KvTransferFailure::expired;
  std::string message{};
};
using TransferMessage = std::variant<Pull, Ready, Get, Piece, Done, Keep, Refused>;

Result<> send_message(PeerSocket& socket, const TransferMessage& message);
// Returns corrupt if the message is invalid.
Result<TransferMessage> receive_message(PeerSocket& socket);

}  // namespace octavo
