// What the engine that decodes and the one that holds the blocks say to each other.
//
//   consumer              producer
//   Pull           ->                 which lease, of which model, how many blocks
//                  <-     Ready       how bytes can go
//   Get            ->                 blocks [first, first + count), and how; a few may be asked for ahead
//                  <-     Piece       they are there, or follow
//   Done           ->                 the lease is over
//
// Or alone on a connection: Done, where nothing is wanted; Keep, as often as there are leases that are to
// last. Packed blocks (block_format.h) are written to the slot that the Get names, or follow the Piece: see
// transport.h. Of native ones (native_blocks.h) the headers follow it, and then their contents, here or over
// UCX. The lease lasts while the connection does.
//
// At any time the producer may say Refused, and closes. A frame is the number of its bytes (u32), a hash of
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

// Memory of the consumer's that a process of the same host can open. slot_bytes 0: there is none.
struct SegmentOffer {
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::int64_t slot_bytes = 0;
  std::string secret{};  // what it begins with
};

struct Pull {
  BlockFormat format{};
  std::string engine_id{};
  std::string request_id{};
  int blocks = 0;  // pieces of the prompt (kv_pieces.h), from its first on, as this format has them
  Hash128 key{};   // of the last of them
  SegmentOffer segment{};
  std::string ucx{};  // where a UCX channel of the consumer's is; "": it has none
};
struct Ready {
  int blocks = 0;              // pieces that there are of those that were asked for, from the first on
  bool shared_memory = false;  // packed blocks go to the slots that were offered
  std::string layout{};        // of native blocks; "": there are none
  bool ucx = false;            // their contents go over UCX, to the channel that was offered
};
enum class BlockWay : std::uint8_t { packed, native };
inline constexpr std::string_view kBlockWayNames[] = {"packed", "native"};
struct Get {
  int first = 0;
  int count = 0;
  int slot = 0;  // of packed blocks
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

// Errors: of the socket (io).
Result<> send_message(PeerSocket& socket, const TransferMessage& message);
// Errors: of the socket (io); nonsense (corrupt).
Result<TransferMessage> receive_message(PeerSocket& socket);

}  // namespace octavo
