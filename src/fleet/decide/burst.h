// Places requests that arrive within a short window. Requests with the same prompt go to one endpoint,
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

  std::int64_t window_ms = 100;          // time for which a request waits for more requests
  std::int64_t per_endpoint_max = kAll;  // maximum number of requests with the same prompt at one endpoint
  std::int64_t block_size = 64;          // tokens per block
  std::int64_t tokens_max = 0;           // maximum number of prompt tokens to compare; 0: 2048 blocks
  // minimum number of equal first blocks for which different prompts are placed together; 0: never
  std::int64_t shared_blocks_min = 0;
  // maximum number of requests in a window; a request above the limit goes to any endpoint
  std::int64_t requests_max = 1000;
  bool by_tokens = false;
};

struct BurstEndpoint {
  EndpointId id = kNoEndpoint;
  std::string name = {};
  int running = 0;  // from the endpoint's metrics
};

// Returns the endpoint of each request. kNoEndpoint means any endpoint, because no other request has the same
// prefix. prompts[i] has the prefix_keys() of request i.
// Prompts of several requests are placed before prompts of one request, and long prompts before short
// prompts. A prompt goes to the endpoint that has the least load of this burst. With shared_blocks_min,
// endpoints with a long common prefix are preferred, until they have reached their share of the burst.
std::vector<EndpointId> place_burst(std::span<const std::vector<PrefixKey>> prompts,
                                    std::span<const BurstEndpoint> endpoints, const BurstOptions& options);

// burst-prefix-cache-producer: reports that the endpoint from place_burst() has cached the whole prompt.
class BurstPrefixProducer : public Producer {
 public:
  BurstOptions options;

  std::vector<PrefixKey> keys(const RouteRequest& request) const;
  void produce(const Cycle& cycle, Overlap& overlap) override;

 private:
  std::span<const std::uint32_t> compared(const RouteRequest& request) const;
};

}  // namespace octavo::fleet
