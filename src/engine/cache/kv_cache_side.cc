#include "engine/cache/kv_cache_side.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace octavo {
namespace {

// Returns the prompt without its last token. Other engines never load that token's block, because every
// engine computes the last token itself.
std::span<const TokenId> others_may_want(std::span<const TokenId> tokens) {
  return tokens.first(tokens.size() - 1);
}

std::vector<Hash128> extras_of(const Accepted& accepted, int block_size) {
  return media_identities(accepted.identity, accepted.request.media, block_size);
}

}  // namespace

bool may_travel(const Accepted& accepted) {
  return std::ranges::none_of(accepted.request.media, [](const MediaPart& part) { return part.tokens == 0; });
}

std::vector<Hash128> KvCacheSide::keys_of(const Accepted& accepted, std::span<const TokenId> tokens) const {
  return transfer_keys(others_may_want(tokens), accepted.identity, format.block_size,
                       extras_of(accepted, format.block_size));
}

KvPrompt KvCacheSide::prompt_of(const Accepted& accepted, std::span<const TokenId> tokens,
                                std::span<const Hash128> keys, int cached) const {
  return {.id = accepted.id,
          .name = accepted.request.name,
          .tokens = static_cast<int>(tokens.size()),
          .text = accepted.request.media.empty() ? others_may_want(tokens) : std::span<const TokenId>(),
          .identity = accepted.identity,
          .keys = keys,
          .params = accepted.request.kv_transfer ? &*accepted.request.kv_transfer : nullptr,
          .cached = cached};
}

PrefixHold* KvCacheSide::hold(const Accepted& accepted, std::span<const TokenId> tokens, int blocks) {
  return scheduler.hold(tokens, accepted.identity, blocks, extras_of(accepted, format.block_size));
}

void KvCacheSide::let_go(PrefixHold*& hold) {
  if (hold == nullptr) return;
  stats.held_blocks -= static_cast<int>(hold->keys.size());
  scheduler.let_go(std::exchange(hold, nullptr));
}

int KvCacheSide::cached_blocks(const Accepted& accepted) {
  PrefixHold* held = hold(accepted, accepted.request.prompt, 0);
  if (held == nullptr) return 0;
  const auto count = static_cast<int>(held->keys.size());
  scheduler.let_go(held);
  return count;
}

std::vector<KvLocation> locations_of(const BlockFormat& format, const PrefixHold& hold,
                                     std::span<const KvPiece> pieces) {
  std::vector<KvLocation> locations;
  for (const KvPiece& piece : pieces)
    locations.push_back(
        {piece.part, piece.part < group_count(format)
                         ? hold.blocks.table(piece.part)[static_cast<std::size_t>(piece.block)]
                         : hold.state_slot});
  return locations;
}

void note_loaded(const Scheduler& scheduler, const PrefixHold& hold, int first, int end,
                 std::vector<std::int32_t>& loaded) {
  const std::vector<CacheGroup>& groups = scheduler.options().groups;
  const auto whole = std::ranges::find(groups, 0, &CacheGroup::window);
  const auto table = hold.blocks.table(whole != groups.end() ? static_cast<int>(whole - groups.begin()) : 0);
  for (int block = first; block < end; ++block)
    if (const std::int32_t number = table[static_cast<std::size_t>(block)]; number >= 0)
      loaded.push_back(number);
}

void KvCacheSide::report_stored(const PrefixHold& hold, std::span<const Hash128> keys) {
  for (const auto& connector : connectors) events.report_stored(*connector, hold, keys);
}

void KvCacheSide::fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message) {
  ++stats.failures[static_cast<std::size_t>(reason)];
  log_warning("request {}: the KV transfer failed ({}), so this engine computes the prompt: {}",
              accepted.request.name, kKvTransferFailureNames[static_cast<std::size_t>(reason)], message);
}

}  // namespace octavo
