// Protocol between the engine that decodes (consumer) and the engine that has the blocks (producer).
//
//   consumer              producer
//   Pull           ->                 lease id, model, number of blocks
//                  <-     Ready       transports for the bytes
//   Get            ->                 blocks [first, first + count) and a transport; Gets may overlap
//                  <-     Piece       the blocks are written, or follow
//   Done           ->                 end of the lease
//
// A connection may also contain only Done, if no block is needed, or only Keep messages, one for each lease
// to renew. Packed blocks (block_format.h) are written to the slot that Get names, or follow the Piece
// message (transport.h). If blocks are native (native_blocks.h), their headers follow the Piece message;
// their contents come next, on the connection or over UCX. The lease does not expire while the connection is
// open.
//
// The producer may send Refused at any time, and then closes the connection. A frame consists of its number
// of bytes (u32), a hash of the types of all fields below (u64, the version) and a TransferMessage
// (base/pack.h).
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

// Memory of the consumer that a process on the same host can open. slot_bytes 0: the consumer offers no
// memory.
struct SegmentOffer {
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::int64_t slot_bytes = 0;
  std::string secret{};  // text at the beginning of the memory, which identifies it
};

struct Pull {
  BlockFormat format{};
  std::string engine_id{};
  std::string request_id{};
  int blocks = 0;  // number of pieces of the prompt (kv_pieces.h), from the first on, in this format
  Hash128 key{};   // key of the last of these pieces
  SegmentOffer segment{};
  std::string ucx{};  // address of the consumer's UCX channel; "": UCX is not used
};
struct Ready {
  int blocks = 0;              // number of requested pieces, from the first on, that are available
  bool shared_memory = false;  // whether packed blocks are written to the offered slots
  std::string layout{};        // layout of native blocks; "": blocks are packed
  bool ucx = false;            // whether contents of native blocks are sent over UCX, to the offered channel
};
enum class BlockWay : std::uint8_t { packed, native };
inline constexpr std::string_view kBlockWayNames[] = {"packed", "native"};
struct Get {
  int first = 0;
  int count = 0;
  int slot = 0;  // slot for packed blocks
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

// Sends a message. Returns the errors of the socket (io).
Result<> send_message(PeerSocket& socket, const TransferMessage& message);
// Receives a message. Returns the errors of the socket (io), or corrupt if the message is invalid.
Result<TransferMessage> receive_message(PeerSocket& socket);

}  // namespace octavo
