// Flow control, as in llm-d: requests wait in priority bands, with a queue for each flow of a band, until
// endpoints have capacity. Every enqueued request gets one outcome. Has no clock: time is an argument.
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
  std::optional<std::int64_t> ttl_us = {};  // nullopt: FlowOptions::ttl_us
  std::shared_ptr<FairnessPolicy> fairness = default_fairness();
  const Ordering* ordering = &default_ordering();
};

struct FlowOptions {
  std::uint64_t bytes_max = 0;       // limit on the sum over all bands; 0: no limit
  std::uint64_t requests_max = 0;    // limit on the sum over all bands; 0: no limit
  std::int64_t ttl_us = 60'000'000;  // maximum waiting time; 0: no limit
  // maximum waiting time while there are no endpoints; nullopt: ttl_us
  std::optional<std::int64_t> no_endpoint_ttl_us = {};
  // saturation from which on the requests of a band wait
  std::shared_ptr<UsageLimit> usage_limit = static_usage_limit(1);
  std::map<int, BandOptions> bands = {};   // by priority
  BandOptions default_band = {};           // priorities of 0 and above without an entry in `bands`
  BandOptions default_negative_band = {};  // priorities below 0 without an entry in `bands`
};

// Not thread-safe.
class FlowControl {
 public:
  explicit FlowControl(FlowOptions options) : options_(std::move(options)) {}

  // Adds a request. Returns nullopt if it waits, otherwise its outcome.
  std::optional<FlowOutcome> enqueue(FlowItem item, bool pool_empty);

  // Returns the request to dispatch now; nullopt if none waits, or if the saturation (1: no capacity) is too
  // high. A band waits while a higher band has waiting requests.
  std::optional<FlowItem> next(double saturation, std::int64_t now_us);

  // Returns the bands that the saturation has blocked in the last next(), highest first.
  std::vector<BlockedBand> blocked(double saturation) const;

  // Reports the end of a dispatched request, with its numbers of prompt and output tokens.
  void ended(std::string_view fairness_id, std::int64_t input_tokens, std::int64_t output_tokens,
             std::int64_t now_us);

  struct Ended {
    FlowItem item;
    FlowOutcome outcome;
  };
  // Removes the requests that have exceeded their maximum waiting time, oldest first.
  std::vector<Ended> expire(std::int64_t now_us, bool pool_empty);
  // Removes a request. Returns nullopt if it does not wait.
  std::optional<Ended> cancel(std::uint64_t id);
  // Removes all waiting requests, at the end of the program.
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
    std::map<std::string, Flow, std::less<>> flows;  // flows without requests are removed
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
  // (arrival time, id) of the requests with each maximum waiting time, in the order of arrival.
  std::map<std::int64_t, std::set<std::pair<std::int64_t, std::uint64_t>>> arrivals_;
  std::uint64_t bytes_ = 0;
  std::uint64_t arrived_ = 0;    // number of requests so far
  std::vector<FlowHead> heads_;  // temporary data
  std::vector<int> priorities_;
  std::vector<double> ceilings_;  // from the last call of next()
};

}  // namespace octavo::fleet
