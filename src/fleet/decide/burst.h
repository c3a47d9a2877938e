// Places requests of one moment together: requests with one prompt go to one endpoint, which computes it
// once, although no cache holds it yet (llm-d's burst-prefix-cache-producer).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleet/decide/plugin.h"
#include "fleet/index/prefix_keys.h"

namespace octavo::fleet {

struct BurstOptions {
  static constexpr std::int64_t kAll = -1;

  std::int64_t window_ms = 100;          // time for which a request waits for others
  std::int64_t per_endpoint_max = kAll;  // of the requests with one prompt
  std::int64_t block_size = 64;          // tokens
  std::int64_t tokens_max = 0;           // compared per prompt; 0 for 2048 blocks
  std::int64_t shared_blocks_min = 0;    // that place different prompts together; 0 for never
  std::int64_t requests_max = 1000;      // of a window; further requests are placed one by one
  bool by_tokens = false;                // endpoints get equal numbers of blocks, not of requests
};

struct BurstEndpoint {
  EndpointId id = kNoEndpoint;
  std::string name = {};
  int running = 0;  // requests, from its metrics
};

// The endpoint for each request; kNoEndpoint for a request that shares no prefix with the others.
// prompts[i]: prefix_keys() of request i. Shared prompts are placed first, long ones before short ones. Each
// goes to the endpoint with the least of this burst; with shared_blocks_min, to one that has the same prefix
// and has not reached its share.
std::vector<EndpointId> place_burst(std::span<const std::vector<PrefixKey>> prompts,
                                    std::span<const BurstEndpoint> endpoints, const BurstOptions& options);

// burst-prefix-cache-producer: reports that the endpoint chosen by place_burst() holds the whole prompt.
class BurstPrefixProducer : public Producer {
 public:
  BurstOptions options;

  std::vector<PrefixKey> keys(const RouteRequest& request) const;
  void produce(const Cycle& cycle, Overlap& overlap) override;

 private:
  std::span<const std::uint32_t> compared(const RouteRequest& request) const;
};

}  // namespace octavo::fleet
