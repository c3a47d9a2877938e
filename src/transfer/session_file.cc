#include "transfer/session_file.h"

#include <cstring>

#include "base/pack.h"

namespace octavo {
namespace {

constexpr std::uint64_t kPartMagic = 0x31534E4F53534553;  // "SESSONS1"

struct Prefix {
  std::uint64_t magic = kPartMagic;
  std::uint32_t version = kSessionFileVersion;
  std::uint32_t header_bytes = 0;
  std::uint64_t blocks_bytes = 0;
  Hash128 checksum;  // of the header
};
static_assert(sizeof(Prefix) == kSessionPartPrefixBytes);

Hash128 checksum_of(std::string_view header) {
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(header)), 0);
}

Result<Prefix> read_prefix(std::string_view bytes) {
  Prefix prefix;
  if (bytes.size() >= sizeof prefix) std::memcpy(&prefix, bytes.data(), sizeof prefix);
  if (bytes.size() < sizeof prefix || prefix.magic != kPartMagic)
    return invalid("file", "is not an exported session, or is damaged: export the session again");
  if (prefix.version != kSessionFileVersion)
    return invalid("file", "has format version {}, and this program reads version {}: use equal versions",
                   prefix.version, kSessionFileVersion);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // limit in bytes; with it, no sum of sizes
                                                           // overflows
  if (prefix.blocks_bytes > kMost)
    return invalid("file", "is damaged: a part has {} bytes", prefix.blocks_bytes);
  return prefix;
}

}  // namespace

std::string begin_session_part(const SessionPartHeader& header) {
  std::string out(sizeof(Prefix), '\0');
  Packer(out).put(header);
  const std::string_view packed = std::string_view(out).substr(sizeof(Prefix));
  const Prefix prefix{.header_bytes = static_cast<std::uint32_t>(packed.size()),
                      .blocks_bytes = static_cast<std::size_t>(header.count) * header.format.stride(),
                      .checksum = checksum_of(packed)};
  std::memcpy(out.data(), &prefix, sizeof prefix);
  return out;
}

Result<std::size_t> session_part_bytes(std::string_view bytes) {
  TRY(const Prefix prefix, read_prefix(bytes));
  return sizeof prefix + prefix.header_bytes + static_cast<std::size_t>(prefix.blocks_bytes);
}

Result<SessionPart> read_session_part(std::string_view bytes) {
  TRY(const Prefix prefix, read_prefix(bytes));
  const std::size_t size =
      sizeof prefix + prefix.header_bytes + static_cast<std::size_t>(prefix.blocks_bytes);
  if (bytes.size() != size)
    return invalid("file", "is incomplete or damaged: a part has {} of {} bytes", bytes.size(), size);
  const std::string_view packed = bytes.substr(sizeof prefix, prefix.header_bytes);
  SessionPart part;
  if (checksum_of(packed) != prefix.checksum)
    return invalid("file", "is damaged: the header of a part has a wrong checksum");
  Unpacker unpacker(std::as_bytes(std::span(packed)));
  unpacker.get(part.header);
  const SessionPartHeader& h = part.header;
  part.blocks = std::as_bytes(std::span(bytes)).subspan(sizeof prefix + prefix.header_bytes);
  const bool sound = unpacker.complete() && h.format.bytes > 0 && h.format.block_size > 0 && h.pieces > 0 &&
                     h.first >= 0 && h.count > 0 && h.count <= h.pieces - h.first &&
                     part.blocks.size() / static_cast<std::size_t>(h.count) == h.format.stride() &&
                     part.blocks.size() % static_cast<std::size_t>(h.count) == 0;
  if (!sound) return invalid("file", "is damaged: the header of a part contradicts itself");
  return part;
}

}  // namespace octavo
