// Format of an exported session: parts that follow each other in a file. A part consists of a prefix, a
// packed header, and packed blocks (block_format.h), which have keys and checksums. So each part can be
// checked and imported separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "request/sampling_params.h"
#include "transfer/block_format.h"

namespace octavo {

// Increase this number with every change of the file format. Servers refuse files with a different version.
inline constexpr std::uint32_t kSessionFileVersion = 1;
// number of bytes at the beginning of a part from which session_part_bytes() computes the part's size
inline constexpr std::size_t kSessionPartPrefixBytes = 40;

struct SessionPartHeader {
  BlockFormat format{};
  std::vector<TokenId> tokens{};  // all tokens of the session's full blocks
  Hash128 identity{};             // see SequenceSpec::identity
  std::vector<Hash128> extras{};  // see SequenceSpec::extras
  int priority = 0;
  int ttl_s = 0;
  int pieces = 0;  // number of pieces (kv_pieces.h) in all parts of the session together
  int first = 0;   // index of the part's first piece
  int count = 0;   // number of pieces in the part

  bool operator==(const SessionPartHeader&) const = default;
};

struct SessionPart {
  SessionPartHeader header;
  std::span<const std::byte> blocks;  // `count` packed blocks, each format.stride() bytes long
};

// Returns the prefix and the header of a part. The caller appends the packed blocks.
std::string begin_session_part(const SessionPartHeader& header);
// Returns the size of the part that begins with these kSessionPartPrefixBytes bytes. Errors are on "file".
Result<std::size_t> session_part_bytes(std::string_view prefix);
// Reads exactly one part. The blocks are not verified. The result refers to `bytes`. Errors are on "file".
Result<SessionPart> read_session_part(std::string_view bytes);

}  // namespace octavo
