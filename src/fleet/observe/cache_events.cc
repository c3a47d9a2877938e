#include "fleet/observe/cache_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "base/msgpack_reader.h"

namespace octavo::fleet {
namespace {

constexpr std::array<std::string_view, 11> kStored{"block_hashes",
                                                   "parent_block_hash",
                                                   "token_ids",
                                                   "block_size",
                                                   "lora_id",
                                                   "medium",
                                                   "lora_name",
                                                   "extra_keys",
                                                   "group_idx",
                                                   "kv_cache_spec_kind",
                                                   "kv_cache_spec_sliding_window"};
constexpr std::array<std::string_view, 3> kRemoved{"block_hashes", "medium", "group_idx"};

// Reads a hash, which is an integer or bytes. Bytes are a big-endian number, of which the last eight bytes
// are used.
std::optional<std::uint64_t> read_hash(MsgpackReader& in) {
  if (const auto number = in.bits()) return number;
  const auto bytes = in.bytes();
  if (!bytes || bytes->empty()) return std::nullopt;
  std::uint64_t hash = 0;
  for (const char byte : bytes->substr(bytes->size() - std::min(bytes->size(), sizeof hash)))
    hash = hash << 8 | static_cast<unsigned char>(byte);
  return hash;
}

bool read_hashes(MsgpackReader& in, std::vector<std::uint64_t>& hashes) {
  const auto count = in.array();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i) {
    const auto hash = read_hash(in);
    if (!hash) return false;
    hashes.push_back(*hash);
  }
  return count.has_value();
}

bool read_tokens(MsgpackReader& in, std::vector<std::uint32_t>& tokens) {
  const auto count = in.array();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i) {
    const auto token = in.bits();
    if (!token) return false;
    tokens.push_back(static_cast<std::uint32_t>(*token));
  }
  return count.has_value();
}

// Reads the extra keys of one block. Keys that are not strings are ignored.
bool read_block_extras(MsgpackReader& in, std::string& extras) {
  if (in.nil()) return true;
  const auto count = in.array();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i) {
    if (const auto text = in.text()) {
      extras += *text;
    } else if (!in.skip()) {
      return false;
    }
  }
  return count.has_value();
}

// Reads the extra keys of the first block, and skips those of all later blocks: the hashes of later blocks
// depend on the first block.
bool read_extras(MsgpackReader& in, std::string& extras) {
  if (in.nil()) return true;
  const auto count = in.array();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i)
    if (i == 0 ? !read_block_extras(in, extras) : !in.skip()) return false;
  return count.has_value();
}

// vLLM and SGLang write "GPU", "CPU", "CPU_PINNED" and "DISK". Other publishers write lower case, or "" for
// the device.
Tier tier_of(std::string_view medium) {
  const auto begins = [&](std::string_view name) {
    return medium.size() >= name.size() &&
           std::ranges::equal(medium.substr(0, name.size()), name, [](char a, char b) {
             return std::toupper(static_cast<unsigned char>(a)) == b;
           });
  };
  if (medium.empty() || begins("GPU") || begins("HBM") || begins("DEVICE")) return Tier::device;
  return begins("CPU") || begins("HOST") || begins("DRAM") ? Tier::host : Tier::disk;
}

bool read_field(MsgpackReader& in, std::string_view name, CacheEvent& event) {
  if (name == "block_hashes") return read_hashes(in, event.blocks);
  if (name == "token_ids") return read_tokens(in, event.tokens);
  if (name == "extra_keys") return read_extras(in, event.salt);
  if (name == "parent_block_hash") {
    if (in.nil()) return true;
    return (event.parent = read_hash(in)).has_value();
  }
  if (name == "block_size" || name == "group_idx") {
    if (in.nil()) return true;
    const auto value = in.integer();
    if (value) (name == "block_size" ? event.block_size : event.group) = *value;
    return value.has_value();
  }
  if (name == "medium" || name == "lora_name" || name == "kv_cache_spec_kind") {
    if (in.nil()) return true;
    const auto text = in.text();
    if (!text) return false;
    if (name == "medium") event.tier = tier_of(*text);
    if (name == "lora_name") event.adapter = *text;
    if (name == "kv_cache_spec_kind")
      event.window = text->find("sliding") != text->npos || text->find("mamba") != text->npos;
    return true;
  }
  return in.skip();
}

enum class Found : std::uint8_t { event, other, nonsense };

bool set_type(std::string_view type, CacheEvent& event) {
  if (type == "BlockStored") {
    event.kind = CacheEvent::Kind::stored;
  } else if (type == "BlockRemoved") {
    event.kind = CacheEvent::Kind::removed;
  } else if (type == "AllBlocksCleared") {
    event.kind = CacheEvent::Kind::cleared;
  } else {
    return false;
  }
  return true;
}

Found read_array_event(MsgpackReader& in, std::uint32_t items, CacheEvent& event) {
  const auto type = items > 0 ? in.text() : std::nullopt;
  if (!type) return Found::nonsense;
  const bool known = set_type(*type, event);
  std::span<const std::string_view> names;
  if (known && event.kind == CacheEvent::Kind::stored) names = kStored;
  if (known && event.kind == CacheEvent::Kind::removed) names = kRemoved;
  for (std::uint32_t i = 1; i < items; ++i)
    if (i <= names.size() ? !read_field(in, names[i - 1], event) : !in.skip()) return Found::nonsense;
  return known ? Found::event : Found::other;
}

Found read_map_event(MsgpackReader& in, std::uint32_t pairs, CacheEvent& event) {
  bool known = false;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const auto name = in.text();
    if (!name) return Found::nonsense;
    if (*name != "type") {
      if (!read_field(in, *name, event)) return Found::nonsense;
      continue;
    }
    const auto type = in.text();
    if (!type) return Found::nonsense;
    known = set_type(*type, event);
  }
  return known ? Found::event : Found::other;
}

bool read_events(MsgpackReader& in, std::vector<CacheEvent>& events) {
  const auto count = in.array();
  for (std::uint32_t i = 0; i < count.value_or(0); ++i) {
    CacheEvent event;
    Found found = Found::nonsense;
    if (const auto items = in.array())
      found = read_array_event(in, *items, event);
    else if (const auto pairs = in.map())
      found = read_map_event(in, *pairs, event);
    if (found == Found::nonsense) return false;
    if (event.salt.starts_with(event.adapter))
      event.salt.erase(0, event.adapter.size());  // vLLM's extra keys begin with the adapter's name
    if (found == Found::event) events.push_back(std::move(event));
  }
  return count.has_value();
}

}  // namespace

Result<CacheBatch> read_cache_batch(std::string_view text) {
  CacheBatch batch;
  MsgpackReader in(text);
  const auto corrupt = [] {
    return failure(ErrorCode::corrupt, "the message is not a batch of KV cache events");
  };
  if (const auto items = in.array()) {
    if (*items < 2 || !in.skip() || !read_events(in, batch.events)) return corrupt();
    if (*items > 2) batch.rank = in.integer();
    return batch;
  }
  const auto pairs = in.map();
  if (!pairs) return corrupt();
  for (std::uint32_t i = 0; i < *pairs; ++i) {
    const auto name = in.text();
    if (!name) return corrupt();
    if (*name == "data_parallel_rank" && (batch.rank = in.integer())) continue;
    if (*name == "events" ? !read_events(in, batch.events) : !in.skip()) return corrupt();
  }
  return batch;
}

}  // namespace octavo::fleet
