#include "events/kv_event_wire.h"

#include <fmt/format.h>
#include <msgpuck.h>

#include <array>

namespace octavo {
namespace {

// vLLM's names, indexed by KvMedium. "GPU" is the device memory, whatever the type of the device.
constexpr std::array<std::string_view, 3> kMediumNames{"GPU", "CPU", "STORAGE"};
constexpr std::string_view name_of(KvMedium medium) { return kMediumNames[static_cast<std::size_t>(medium)]; }

template <class Encode>
void append(std::string& out, Encode encode) {
  std::array<char, 16> bytes;
  const char* const end = encode(bytes.data());
  out.append(bytes.data(), static_cast<std::size_t>(end - bytes.data()));
}

}  // namespace

void KvEventBatch::number(std::uint64_t value) {
  append(events_, [&](char* to) { return mp_encode_uint(to, value); });
}
void KvEventBatch::text(std::string_view value) {
  const auto size = static_cast<std::uint32_t>(value.size());
  append(events_, [&](char* to) { return mp_encode_strl(to, size); });
  events_ += value;
}
void KvEventBatch::nil() { append(events_, mp_encode_nil); }
void KvEventBatch::map(std::uint32_t fields) {
  append(events_, [&](char* to) { return mp_encode_map(to, fields); });
}
void KvEventBatch::array(std::uint32_t items) {
  append(events_, [&](char* to) { return mp_encode_array(to, items); });
}

void KvEventBatch::add(const KvEvent& event, std::span<const std::int32_t> tokens,
                       const KvContentNames* names) {
  ++count_;
  switch (event.kind) {
    case KvEvent::Kind::stored:
      return stored(event, tokens, names);
    case KvEvent::Kind::removed:
      return removed(event);
    case KvEvent::Kind::cleared:
      map(1);
      text("type");
      return text("AllBlocksCleared");
  }
}

void KvEventBatch::stored(const KvEvent& event, std::span<const std::int32_t> tokens,
                          const KvContentNames* names) {
  const int window = windows_[static_cast<std::size_t>(event.group)];
  map(window > 0 ? 12 : 11);
  text("type");
  text("BlockStored");
  text("block_hashes");
  array(1);
  number(event.key.low);
  text("parent_block_hash");
  event.parent_key == Hash128{} ? nil() : number(event.parent_key.low);
  text("token_ids");
  array(static_cast<std::uint32_t>(tokens.size()));
  for (const std::int32_t token : tokens) number(static_cast<std::uint64_t>(token));
  text("block_size");
  number(static_cast<std::uint64_t>(block_size_));
  text("lora_id");
  nil();
  text("medium");
  text(name_of(event.medium));
  text("lora_name");
  names && !names->adapter.empty() ? text(names->adapter) : nil();
  text("extra_keys");  // A list with one element for each block. Each event has one block.
  array(1);
  extra_keys(event, names);
  text("group_idx");
  number(static_cast<std::uint64_t>(event.group));
  text("kv_cache_spec_kind");
  text(window > 0 ? "sliding_window" : "full_attention");
  if (window > 0) {
    text("kv_cache_spec_sliding_window");
    number(static_cast<std::uint64_t>(window));
  }
}

void KvEventBatch::extra_keys(const KvEvent& event, const KvContentNames* names) {
  if (event.extra == Hash128{}) return nil();
  if (!names) {
    array(1);
    return text(fmt::format("{:016x}{:016x}", event.extra.high, event.extra.low));
  }
  array(names->adapter.empty() || names->salt.empty() ? 1 : 2);
  if (!names->adapter.empty()) text(names->adapter);
  if (!names->salt.empty()) text(names->salt);
}

void KvEventBatch::removed(const KvEvent& event) {
  map(4);
  text("type");
  text("BlockRemoved");
  text("block_hashes");
  array(1);
  number(event.key.low);
  text("medium");
  text(name_of(event.medium));
  text("group_idx");
  number(static_cast<std::uint64_t>(event.group));
}

std::string KvEventBatch::finish(double seconds, int rank) {
  std::string out;
  append(out, [&](char* to) { return mp_encode_array(to, 3); });
  append(out, [&](char* to) { return mp_encode_double(to, seconds); });
  append(out, [&](char* to) { return mp_encode_array(to, count_); });
  out += events_;
  append(out, [&](char* to) { return mp_encode_uint(to, static_cast<std::uint64_t>(rank)); });
  events_.clear();
  count_ = 0;
  return out;
}

}  // namespace octavo
