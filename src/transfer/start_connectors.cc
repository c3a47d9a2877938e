#include "transfer/start_connectors.h"

#include <utility>

#include "base/log.h"
#include "transfer/peers/peer_connector.h"
#include "transfer/tiers/tier_connector.h"

namespace octavo {
namespace {

Result<std::unique_ptr<KvConnector>> start_tier(KvTierOptions tier, const KvConnectorSite& site) {
  if (tier.on_host_of_device && !site.in_host_memory) {
    tier.host_bytes = tier.bytes;
    tier.path_or_url.clear();
  }
  TRY(auto connector, TierConnector::open(tier, site.format, site.cache_blocks, site.cache));
  if (tier.host_bytes > 0)
    log_info("KV blocks in host memory: up to {} MiB, {}", tier.host_bytes >> 20,
             site.in_host_memory ? "allocated on demand" : "pinned, allocated at start");
  return connector;
}

}  // namespace

Result<std::vector<std::unique_ptr<KvConnector>>> start_connectors(const KvTransferOptions& options,
                                                                   const KvConnectorSite& site) {
  std::vector<StartConnector> starts;
  if (options.tier)
    starts.emplace_back([&](const KvConnectorSite& at) { return start_tier(*options.tier, at); });
  if (options.produces || options.consumes)
    starts.emplace_back([&](const KvConnectorSite& at) {
      return PeerConnector::start(options, at.format, at.engine, at.cache);
    });
  starts.insert(starts.end(), options.others.begin(), options.others.end());
  std::vector<std::unique_ptr<KvConnector>> connectors;
  for (const StartConnector& start : starts) {
    TRY(auto connector, start(site));
    connectors.push_back(std::move(connector));
  }
  return connectors;
}

}  // namespace octavo
