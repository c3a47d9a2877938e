// precise-prefix-cache-producer: how much of the prompt each endpoint holds. Of endpoints that tell their KV
// cache events, what they told; of the others, and of prompts whose tokens are not known here, what they were
// lately sent (NVIDIA Dynamo's fallback).
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/index/held_blocks.h"
#include "fleet/index/recent_prefixes.h"

namespace octavo::fleet {
namespace {

constexpr int kBlockSize = 16;               // tokens, until an endpoint has told its own
constexpr std::size_t kTokensMax = 1 << 20;  // of a prompt; what follows is not looked at

class PrecisePrefixProducer : public Producer {
 public:
  PrecisePrefixProducer(std::int64_t blocks_max, std::int64_t recent_blocks_max, std::int64_t ttl_us)
      : held_(static_cast<std::size_t>(blocks_max)),
        recent_(static_cast<std::size_t>(recent_blocks_max), ttl_us) {}

  void produce(const Cycle& cycle, Overlap& overlap) override {
    write_keys(cycle);
    overlap.block_size = block_size();
    recent_.match(keys_, overlap);
    if (!cycle.request.tokens_are_exact) return;
    held_.match(keys_, told_);
    for (const Member& member : cycle.view.members) {
      if (!tells(member.id)) continue;
      const Hits before = overlap.of(member.id), now = told_.of(member.id);
      if (before == now || (now.blocks() == 0 && private_)) continue;
      overlap.at(member.id) = now;
      if (before.blocks() == 0) overlap.holders.push_back(member.id);
      if (now.blocks() == 0) std::erase(overlap.holders, member.id);
    }
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    write_keys(cycle);
    recent_.sent(endpoint, keys_, cycle.now_us);
  }

  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) override {
    const int before = block_size();
    for (const CacheEvent& event : events) held_.apply(endpoint, event);
    if (block_size() != before) recent_.clear();  // its keys are of other blocks
    if (held_.blocks(endpoint) == 0) return;
    if (endpoint >= tells_.size()) tells_.resize(endpoint + std::size_t{1});
    tells_[endpoint] = true;
  }

  void forget(EndpointId endpoint) override {
    held_.clear(endpoint);
    recent_.clear(endpoint);
    if (tells(endpoint)) tells_[endpoint] = false;
  }
  void expire(std::int64_t now_us) override { recent_.expire(now_us); }

 private:
  bool tells(EndpointId endpoint) const { return endpoint < tells_.size() && tells_[endpoint]; }

  int block_size() const { return held_.block_size() > 0 ? held_.block_size() : kBlockSize; }

  // Events of a model bear no name, those of an adapter bear its.
  void write_keys(const Cycle& cycle) {
    const RouteRequest& request = cycle.request;
    const bool adapter = std::ranges::any_of(cycle.view.members, [&](const Member& member) {
      const auto& adapters = member.endpoint->adapters;
      return std::ranges::find(adapters, request.model) != adapters.end();
    });
    const PrefixKey first = first_key(adapter ? request.model : std::string(), request.cache_salt);
    private_ = adapter || !request.cache_salt.empty();
    const std::span<const std::uint32_t> tokens(request.tokens);
    prefix_keys(first, tokens.first(std::min(tokens.size(), kTokensMax)), block_size(), false, keys_);
  }

  HeldBlocks held_;
  RecentPrefixes recent_;
  std::vector<PrefixKey> keys_;
  Overlap told_;
  // Engines differ in how they tell of salts and adapters: where nothing is told, what was sent counts.
  bool private_ = false;
  std::vector<bool> tells_;  // [EndpointId]: has told of a block
};

}  // namespace

std::unique_ptr<Plugin> make_precise_prefix_producer(Parameters& parameters, Plugins&) {
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  std::int64_t blocks_max = 4 << 20, recent_blocks_max = 31250, ttl_us = 120'000'000;
  parameters.read("maxBlocksPerServer", blocks_max, 1, kMany);
  parameters.read("lruCapacityPerServer", recent_blocks_max, 1, kMany);
  parameters.read_duration("ttl", ttl_us);
  return std::make_unique<PrecisePrefixProducer>(blocks_max, recent_blocks_max, ttl_us);
}

}  // namespace octavo::fleet
