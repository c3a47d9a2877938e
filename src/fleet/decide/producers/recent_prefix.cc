// approx-prefix-cache-producer: finds the part of the prompt that was recently sent to each endpoint, and
// that the endpoint has probably cached.
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/index/recent_prefixes.h"

namespace octavo::fleet {
namespace {

// Minimum block size in tokens, as in llm-d. Used even if engines report less.
constexpr std::int64_t kBlockSizeMin = 64;

class RecentPrefixProducer : public Producer {
 public:
  struct Options {
    std::int64_t block_size = 16;
    bool auto_tune = true;  // use the block size and the number of blocks that endpoints report
    std::int64_t tokens_max = 131072;
    // maximum number of blocks of an endpoint that reports no number of blocks
    std::int64_t blocks_max = 31250;
    std::int64_t ttl_us = 0;
  };

  explicit RecentPrefixProducer(Options options)
      : options_(options), recent_(static_cast<std::size_t>(options.blocks_max), options.ttl_us) {}

  void produce(const Cycle& cycle, Overlap& overlap) override {
    overlap.block_size = static_cast<int>(block_size(cycle));
    write_keys(cycle, overlap.block_size);
    recent_.match(keys_, overlap);
  }

  std::optional<IndexSize> index_size() const override {
    return IndexSize{.blocks = static_cast<std::int64_t>(recent_.blocks())};
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    const std::int64_t size = block_size(cycle);
    write_keys(cycle, static_cast<int>(size));
    if (const Member* member = cycle.view.find(endpoint);
        options_.auto_tune && member && member->state.num_blocks > 0 && member->state.block_size > 0)
      recent_.limit(endpoint,
                    static_cast<std::size_t>(member->state.num_blocks * member->state.block_size / size));
    recent_.sent(endpoint, keys_, cycle.now_us);
  }

  void forget(EndpointId endpoint) override { recent_.clear(endpoint); }
  void restarted(EndpointId endpoint) override { recent_.clear(endpoint); }
  void expire(std::int64_t now_us) override { recent_.expire(now_us); }

 private:
  std::int64_t block_size(const Cycle& cycle) const {
    std::int64_t size = options_.block_size;
    if (options_.auto_tune) {
      const auto known =
          std::ranges::find_if(cycle.view.members, [](const Member& m) { return m.state.block_size > 0; });
      if (known != cycle.view.members.end()) size = known->state.block_size;
    }
    return std::max(size, kBlockSizeMin);
  }

  void write_keys(const Cycle& cycle, int size) {
    const auto& tokens = cycle.request.tokens;
    const std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(options_.tokens_max));
    prefix_keys(first_key(cycle.request.model, cycle.request.cache_salt), std::span(tokens).first(count),
                size, true, keys_);
  }

  Options options_;
  RecentPrefixes recent_;
  std::vector<PrefixKey> keys_;
};

}  // namespace

std::unique_ptr<Plugin> make_recent_prefix_producer(Parameters& parameters, Plugins&) {
  RecentPrefixProducer::Options options;
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  // maxPrefixBlocksToMatch has no effect, because maxPrefixTokensToMatch is used, as in llm-d.
  std::int64_t blocks_to_match = 2048;
  parameters.read("blockSizeTokens", options.block_size, 1, kMany);
  parameters.read("blockSize", options.block_size, 1, kMany);  // old name
  std::int64_t block_characters = 0;                           // older name
  parameters.read("hashBlockSize", block_characters, 1, kMany);
  if (block_characters > 0) options.block_size = std::max<std::int64_t>(1, block_characters / 4);
  parameters.read("autoTune", options.auto_tune);
  parameters.read("maxPrefixBlocksToMatch", blocks_to_match, 1, kMany);
  parameters.read("maxPrefixTokensToMatch", options.tokens_max, 1, kMany);
  parameters.read("lruCapacityPerServer", options.blocks_max, 1, kMany);
  parameters.read_duration("ttl", options.ttl_us);
  return std::make_unique<RecentPrefixProducer>(options);
}

}  // namespace octavo::fleet
