// precise-prefix-cache-producer: finds the cached part of the prompt at each endpoint, from KV cache events.
// precise-prefix-cache-scorer does the same, and also scores endpoints by the cached part. For endpoints
// without events and for prompts with unknown tokens, it uses the prompts that were recently sent (as in
// NVIDIA Dynamo). With speculativeIndexing, a sent prompt counts as cached for speculativeTTL, because
// engines report blocks only after they have computed them.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <utility>

#include "fleet/decide/held_blocks_owner.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/index/held_blocks.h"
#include "fleet/index/recent_prefixes.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kTokensMax = 1 << 20;  // maximum number of prompt tokens to look up
constexpr std::int64_t kBlockSizeMax = 1 << 16;
constexpr std::int64_t kMany = std::int64_t{1} << 30;

struct Options {
  std::int64_t block_size = 16, blocks_max = 4 << 20, recent_blocks_max = 31250, ttl_us = 120'000'000;
  std::optional<std::int64_t> expected_us = {};  // speculativeTTL; nullopt: speculativeIndexing is false
  double host_weight = 1, disk_weight = 1;
};

class PrecisePrefixProducer : public Producer, public HeldBlocksOwner {
 public:
  explicit PrecisePrefixProducer(const Options& options)
      : options_(options),
        held_(static_cast<std::size_t>(options.blocks_max)),
        keyed_size_(static_cast<int>(options.block_size)),
        recent_(static_cast<std::size_t>(options.recent_blocks_max), options.ttl_us) {
    if (options.expected_us)
      expected_.emplace(static_cast<std::size_t>(options.recent_blocks_max), *options.expected_us);
  }

  void produce(const Cycle& cycle, Overlap& overlap) override {
    write_keys(cycle);
    overlap.block_size = keyed_size_;
    overlap.host_weight = options_.host_weight;
    overlap.disk_weight = options_.disk_weight;
    recent_.match(keys_, overlap);
    if (!cycle.request.tokens_are_exact) return;
    const HeldBlocks::Reading held = held_.read();
    held.match(keys_, held_overlap_);
    if (expected_) expected_->match(keys_, expected_hits_);
    for (const Member& member : cycle.view.members) {
      if (!held.reports(member.id)) continue;
      const Hits before = overlap.of(member.id);
      Hits now = held_overlap_.of(member.id);
      now.device += std::max(expected_hits_.of(member.id).blocks(), now.blocks()) - now.blocks();
      if (before == now || (now.blocks() == 0 && private_)) continue;
      overlap.at(member.id) = now;
      if (before.blocks() == 0) overlap.holders.push_back(member.id);
      if (now.blocks() == 0) std::erase(overlap.holders, member.id);
    }
  }

  std::optional<IndexSize> index_size() const override {
    IndexSize size = held_.size();
    size.blocks += static_cast<std::int64_t>(recent_.blocks());
    return size;
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    write_keys(cycle);
    const bool reported = cycle.request.tokens_are_exact && !private_ && held_.read().reports(endpoint);
    if (expected_ && reported) return expected_->sent(endpoint, keys_, cycle.now_us);
    recent_.sent(endpoint, keys_, cycle.now_us);
  }

  void cache_changed(EndpointId endpoint, std::span<const CacheEvent> events) override {
    for (const CacheEvent& event : events) held_.apply(endpoint, event);
  }

  HeldBlocks& held_blocks() override { return held_; }

  void forget(EndpointId endpoint) override {
    held_.clear(endpoint);
    restarted(endpoint);
  }
  void restarted(EndpointId endpoint) override {
    recent_.clear(endpoint);
    if (expected_) expected_->clear(endpoint);
  }
  void expire(std::int64_t now_us) override {
    recent_.expire(now_us);
    if (expected_) expected_->expire(now_us);
  }

 private:
  // Events contain the adapter's name, but not the name of the base model.
  void write_keys(const Cycle& cycle) {
    const RouteRequest& request = cycle.request;
    const bool adapter = std::ranges::any_of(cycle.view.members, [&](const Member& member) {
      const auto& adapters = member.endpoint->adapters;
      return std::ranges::find(adapters, request.model) != adapters.end();
    });
    const PrefixKey first = first_key(adapter ? request.model : std::string(), request.cache_salt);
    private_ = adapter || !request.cache_salt.empty() || !request.media.empty();
    const int reported = held_.read().block_size();
    // The stored keys are of blocks of a different size.
    if (reported > 0 && std::exchange(keyed_size_, reported) != reported) {
      recent_.clear();
      if (expected_) expected_->clear();
    }
    const std::span<const std::uint32_t> tokens(request.tokens);
    prefix_keys(first, tokens.first(std::min(tokens.size(), kTokensMax)), keyed_size_, false, keys_);
  }

  const Options options_;
  HeldBlocks held_;
  int keyed_size_;  // tokens per block: the configured number, until an endpoint reports its number
  RecentPrefixes recent_;
  // blocks that endpoints with events have not reported yet, but probably will
  std::optional<RecentPrefixes> expected_;
  Overlap expected_hits_;
  std::vector<PrefixKey> keys_;
  Overlap held_overlap_;
  // true: the engine's hashes depend on more than the tokens: on a salt or an adapter, which some engines do
  // not report, or on media, whose hashes the picker does not know. If no endpoint has reported the prompt's
  // blocks, the recently sent prompts are used.
  bool private_ = false;
};

class PrecisePrefixScorer : public PrecisePrefixProducer, public Scorer {
 public:
  using PrecisePrefixProducer::PrecisePrefixProducer;

  void produce(const Cycle& cycle, Overlap& overlap) override {
    PrecisePrefixProducer::produce(cycle, overlap);
    overlap_ = &overlap;
  }
  void score(Cycle&, std::span<const Member* const> candidates, std::span<double> scores) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = overlap_->share(candidates[i]->id);
  }

 private:
  const Overlap* overlap_ = nullptr;  // result of the current cycle; producers run before scorers
};

// Reads llm-d's settings of block hashes. Seed and algorithm have no effect, because the hashes stay in
// this process.
void read_token_processor(Parameters& fields, std::int64_t& block_size) {
  std::string seed, algorithm = "cbor-fnv";
  fields.read("blockSize", block_size, 1, kBlockSizeMax);  // old name
  fields.read("blockSizeTokens", block_size, 1, kBlockSizeMax);
  fields.read("hashSeed", seed);
  fields.read("hashAlgorithm", algorithm);
  if (algorithm != "cbor-fnv" && algorithm != "xxh64")
    fields.fail("hashAlgorithm", "must be \"cbor-fnv\" or \"xxh64\"");
}

// Reads the weight of each tier, such as [{name: gpu, weight: 1.0}, {name: cpu, weight: 0.8}].
void read_tiers(Parameters& fields, Options& options) {
  constexpr std::string_view kField = "kvCacheBackendConfigs";
  const auto* list = fields.get(kField);
  if (!list) return;
  double device = 1, host = 1, disk = 1;
  for (const auto& item : list->is_array() ? list->get_array() : boost::json::array{nullptr}) {
    if (!item.is_object()) return fields.fail(kField, "must be a list of {name, weight}");
    Parameters tier(item.get_object(), "");
    std::string name;
    double weight = 1;
    tier.read("name", name);
    tier.read("weight", weight, 0, 1e6);
    if (const auto done = tier.done(); !done) return fields.fail(kField, done.error().message);
    (name == "gpu" ? device : name == "cpu" ? host : disk) = weight;
  }
  if (device == 0) return fields.fail(kField, "must have a weight above 0 for gpu");
  options.host_weight = host / device;
  options.disk_weight = disk / device;
}

void read_indexer(Parameters& fields, Options& options) {
  read_tiers(fields, options);
  fields.read_object("kvBlockIndexConfig", [&](Parameters& index) {
    bool metrics = false;
    index.read("enableMetrics", metrics);
    index.get("metricsLoggingInterval");  // has no effect, because the index writes no log
    index.read_object("inMemoryConfig", [&](Parameters& memory) {
      std::int64_t pods = 10;
      memory.read("size", options.blocks_max, 1, kMany);
      // has no effect, because any number of endpoints may have a block
      memory.read("podCacheSize", pods, 1, kMany);
    });
  });
}

Options read_options(Parameters& parameters) {
  Options options;
  parameters.read("maxBlocksPerServer", options.blocks_max, 1, kMany);
  parameters.read("lruCapacityPerServer", options.recent_blocks_max, 1, kMany);
  parameters.read_duration("ttl", options.ttl_us);
  parameters.read_object("tokenProcessorConfig",
                         [&](Parameters& fields) { read_token_processor(fields, options.block_size); });
  parameters.read_object("indexerConfig", [&](Parameters& fields) { read_indexer(fields, options); });
  bool speculative = false;
  std::int64_t speculative_us = 2'000'000;
  parameters.read("speculativeIndexing", speculative);
  parameters.read_duration("speculativeTTL", speculative_us);
  if (speculative_us == 0) parameters.fail("speculativeTTL", "must be more than 0");
  if (speculative) options.expected_us = speculative_us;
  return options;
}

}  // namespace

std::unique_ptr<Plugin> make_precise_prefix_producer(Parameters& parameters, Plugins&) {
  return std::make_unique<PrecisePrefixProducer>(read_options(parameters));
}

std::unique_ptr<Plugin> make_precise_prefix_scorer(Parameters& parameters, Plugins&) {
  return std::make_unique<PrecisePrefixScorer>(read_options(parameters));
}

}  // namespace octavo::fleet
