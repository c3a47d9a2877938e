// burst-prefix-cache-producer: see burst.h.
#include "fleet/decide/burst.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {

std::unique_ptr<Plugin> make_burst_prefix_producer(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<BurstPrefixProducer>();
  BurstOptions& options = plugin->options;
  constexpr std::int64_t kMany = std::int64_t{1} << 30, kWindowMsMax = 10'000;
  std::string balance = "requests";
  parameters.read("windowDurationMs", options.window_ms, 1, kWindowMsMax);
  parameters.read("maxPerReplica", options.per_endpoint_max, BurstOptions::kAll, kMany);
  parameters.read("blockSizeTokens", options.block_size, 1, kMany);
  parameters.read("maxPrefixTokensToMatch", options.tokens_max, 0, kMany);
  parameters.read("minColocateBlocks", options.shared_blocks_min, 0, kMany);
  parameters.read("maxBatchSize", options.requests_max, BurstOptions::kAll, kMany);
  parameters.read("balanceBy", balance);
  for (const auto& [name, value] :
       {std::pair("maxPerReplica", options.per_endpoint_max), {"maxBatchSize", options.requests_max}})
    if (value == 0) parameters.fail(name, "must be -1 (no limit) or at least 1");
  if (options.tokens_max > 0 && options.tokens_max < options.block_size)
    parameters.fail("maxPrefixTokensToMatch", "must be 0 or at least blockSizeTokens");
  options.by_tokens = balance == "tokens";
  if (!options.by_tokens && balance != "requests")
    parameters.fail("balanceBy", "must be \"requests\" or \"tokens\"");
  return plugin;
}

}  // namespace octavo::fleet
