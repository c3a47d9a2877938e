#include "fleet/index/held_dump.h"

#include <bit>
#include <cstring>

namespace octavo::fleet {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kBegin = "octavo held blocks 1\n";
constexpr std::size_t kBlockBytes = 17;
constexpr std::uint8_t kAllTiers = 0b111;

template <class Value>
void write(std::string& out, Value value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Value>
void take(std::string_view& bytes, Value& value) {
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
}

}  // namespace

std::string write_held_dump(const HeldDump& dump) {
  std::string out(kBegin);
  out.reserve(kBegin.size() + 36 + kBlockBytes * dump.blocks.size());
  write(out, static_cast<std::int32_t>(dump.block_size));
  write(out, dump.group);
  write(out, dump.position.next);
  write(out, dump.position.digest);
  write(out, std::uint64_t{dump.blocks.size()});
  for (const HeldDump::Block& block : dump.blocks) {
    write(out, block.name);
    write(out, block.key);
    write(out, block.tiers);
  }
  return out;
}

Result<HeldDump> read_held_dump(std::string_view bytes) {
  const auto corrupt = [](std::string_view what) { return failure(ErrorCode::corrupt, "{}", what); };
  if (!bytes.starts_with(kBegin) || bytes.size() < kBegin.size() + 36) return corrupt("no held blocks");
  bytes.remove_prefix(kBegin.size());
  HeldDump dump;
  std::int32_t block_size;
  std::uint64_t count;
  take(bytes, block_size);
  take(bytes, dump.group);
  take(bytes, dump.position.next);
  take(bytes, dump.position.digest);
  take(bytes, count);
  dump.block_size = block_size;
  if (block_size <= 0) return corrupt("no block size");
  if (bytes.size() % kBlockBytes != 0 || bytes.size() / kBlockBytes != count) return corrupt("cut short");
  dump.blocks.resize(count);
  for (HeldDump::Block& block : dump.blocks) {
    take(bytes, block.name);
    take(bytes, block.key);
    take(bytes, block.tiers);
    if (block.tiers == 0 || (block.tiers & ~kAllTiers) != 0) return corrupt("no such tier");
  }
  return dump;
}

}  // namespace octavo::fleet
