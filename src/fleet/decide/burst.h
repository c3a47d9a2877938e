// Places requests that arrive at almost the same time. Requests with the same prompt go to one endpoint,
// which computes the prompt once, even if no endpoint has cached it (llm-d's burst-prefix-cache-producer).
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
  std::int64_t per_endpoint_max = kAll;  // maximum number of requests with the same prompt at one endpoint
  std::int64_t block_size = 64;          // tokens per block
  std::int64_t tokens_max = 0;           // maximum number of prompt tokens to compare; 0: 2048 blocks
  // minimum number of common blocks to place different prompts together; 0: never
  std::int64_t shared_blocks_min = 0;
  // maximum number of requests in a window; each further request is placed alone
  std::int64_t requests_max = 1000;
  bool by_tokens = false;  // balance blocks instead of requests
};

struct BurstEndpoint {
  EndpointId id = kNoEndpoint;
  std::string name = {};
  int running = 0;  // running requests, from the endpoint's metrics
};

// Returns the endpoint of each request; kNoEndpoint if the request shares no prefix with others. prompts[i]:
// prefix_keys() of request i.
// Prompts of several requests are placed before prompts of one request, then long ones before short ones. A
// prompt goes to the endpoint with the least load of the burst. With shared_blocks_min, it goes to an
// endpoint with the same prefix, unless this endpoint has reached its share.
std::vector<EndpointId> place_burst(std::span<const std::vector<PrefixKey>> prompts,
                                    std::span<const BurstEndpoint> endpoints, const BurstOptions& options);

// burst-prefix-cache-producer: reports the prompt as completely cached at the endpoint from place_burst().
class BurstPrefixProducer : public Producer {
 public:
  BurstOptions options;

  std::vector<PrefixKey> keys(const RouteRequest& request) const;
  void produce(const Cycle& cycle, Overlap& overlap) override;

 private:
  std::span<const std::uint32_t> compared(const RouteRequest& request) const;
};

}  // namespace octavo::fleet
