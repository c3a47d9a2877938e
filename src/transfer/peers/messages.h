// Protocol between the engine that decodes (consumer) and the engine that holds the blocks (producer).
//
//   consumer              producer
//   Pull           ->                 lease id, model, number of blocks
//                  <-     Ready       transports for the bytes
//   Get            ->                 blocks [first, first + count) and a transport; Gets may overlap
//                  <-     Piece       the blocks are written, or follow
//   Done           ->                 end of the lease
//
// A connection may also carry only Done, if no block is needed, or only Keep messages, one for each lease to
// renew. Packed blocks (block_format.h) go to the slot of the Get, or follow the Piece (transport.h).
// For native blocks (native_blocks.h), the headers follow the Piece, then the contents, on the connection or
// over UCX. The lease lasts while the connection is open.
//
// The producer may send Refused at any time, and then closes. A frame is its number of bytes (u32), a hash of
// the types of all fields below (u64: the version) and a TransferMessage (base/pack.h).
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

// Memory of the consumer that a process of the same host can open. If slot_bytes is 0, no memory is offered.
struct SegmentOffer {
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::int64_t slot_bytes = 0;
  std::string secret{};  // secret at the beginning of the memory
};

struct Pull {
  BlockFormat format{};
  std::string engine_id{};
  std::string request_id{};
  int blocks = 0;  // number of leading pieces of the prompt (kv_pieces.h), in this format
  Hash128 key{};   // key of the last of them
  SegmentOffer segment{};
  std::string ucx{};  // address of the consumer's UCX channel; "": none
};
struct Ready {
  int blocks = 0;              // number of requested pieces that are available, from the first on
  bool shared_memory = false;  // packed blocks go to the offered slots
  std::string layout{};        // layout of native blocks; "": none
  bool ucx = false;            // contents of native blocks go over UCX, to the offered channel
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

// Errors: those of the socket (io).
Result<> send_message(PeerSocket& socket, const TransferMessage& message);
// Errors: those of the socket (io); an invalid message (corrupt).
Result<TransferMessage> receive_message(PeerSocket& socket);

}  // namespace octavo
