// Queues for requests until endpoints have capacity: priority bands, and in each band a queue for each flow
// (llm-d's flow control). Has no clock: time is an argument. Every enqueued request gets one outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "fleet/flow/fairness.h"
#include "fleet/flow/flow_item.h"
#include "fleet/flow/ordering.h"
#include "fleet/flow/reclamation.h"
#include "fleet/flow/usage_limit.h"

namespace octavo::fleet {

struct BandOptions {
  std::uint64_t bytes_max = 1'000'000'000;
  std::uint64_t requests_max = 5000;
  std::optional<std::int64_t> ttl_us = {};  // nullopt: the limit of all bands
  std::shared_ptr<FairnessPolicy> fairness = default_fairness();
  const Ordering* ordering = &default_ordering();
};

struct FlowOptions {
  std::uint64_t bytes_max = 0;       // limit for all bands; 0: no limit
  std::uint64_t requests_max = 0;    // limit for all bands; 0: no limit
  std::int64_t ttl_us = 60'000'000;  // maximum waiting time; 0: no limit
  // maximum waiting time without endpoints; nullopt: ttl_us
  std::optional<std::int64_t> no_endpoint_ttl_us = {};
  std::shared_ptr<UsageLimit> usage_limit = static_usage_limit(1);  // saturation from which on bands wait
  std::map<int, BandOptions> bands = {};                            // by priority
  BandOptions default_band = {};                                    // options for priorities without a band
  BandOptions default_negative_band = {};  // options for priorities below 0 without a band
};

// Not thread-safe.
class FlowControl {
 public:
  explicit FlowControl(FlowOptions options) : options_(std::move(options)) {}

  // nullopt: the request waits.
  std::optional<FlowOutcome> enqueue(FlowItem item, bool pool_empty);

  // The request to dispatch now. nullopt: no request waits, or the saturation (1: no capacity) is too high. A
  // band's requests are dispatched only if no higher band has waiting requests.
  std::optional<FlowItem> next(double saturation, std::int64_t now_us);

  // Bands whose requests waited because of the saturation in the last call of next(), highest first.
  std::vector<BlockedBand> blocked(double saturation) const;

  // Reports that a dispatched request has ended, with its numbers of prompt and output tokens.
  void ended(std::string_view fairness_id, std::int64_t input_tokens, std::int64_t output_tokens,
             std::int64_t now_us);

  struct Ended {
    FlowItem item;
    FlowOutcome outcome;
  };
  // Removes requests that have waited too long, oldest first.
  std::vector<Ended> expire(std::int64_t now_us, bool pool_empty);
  // nullopt: the request is not waiting.
  std::optional<Ended> cancel(std::uint64_t id);
  // Removes all waiting requests. Call it when the program stops.
  std::vector<Ended> drain();

  std::size_t waiting() const { return places_.size(); }
  struct BandLoad {
    int priority;
    std::uint64_t requests, bytes;
  };
  std::vector<BandLoad> loads() const;

 private:
  using Order = std::pair<std::int64_t, std::uint64_t>;  // ordering key, arrival number
  using Flow = std::map<Order, FlowItem>;
  struct Band {
    BandOptions options;
    std::unique_ptr<Fairness> fairness;
    std::map<std::string, Flow, std::less<>> flows;  // no flow is empty
    std::uint64_t requests = 0, bytes = 0;
  };
  struct Place {
    int priority;
    std::string flow;
    Order order;
    std::int64_t arrived_us;
    std::int64_t ttl_us;
  };

  Band& band(int priority);
  FlowItem take(std::uint64_t id);

  const FlowOptions options_;
  std::map<int, Band, std::greater<>> bands_;  // highest first
  std::unordered_map<std::uint64_t, Place> places_;
  // Requests by their maximum waiting time, as (arrival time, id), in the order of arrival.
  std::map<std::int64_t, std::set<std::pair<std::int64_t, std::uint64_t>>> arrivals_;
  std::uint64_t bytes_ = 0;
  std::uint64_t arrived_ = 0;    // number of requests so far
  std::vector<FlowHead> heads_;  // temporary data
  std::vector<int> priorities_;
  std::vector<double> ceilings_;  // from the last call of next()
};

}  // namespace octavo::fleet
