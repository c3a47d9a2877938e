// Flow control, as in llm-d: requests wait until endpoints have capacity, in priority bands with one queue
// for each flow. FlowGate calls it. Every request gets exactly one outcome. The class has no clock, so
// times are arguments.
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
  std::uint64_t bytes_max = 0;  // maximum bytes of all waiting requests together; 0: no limit
  std::uint64_t requests_max = 0;
  std::int64_t ttl_us = 60'000'000;  // maximum waiting time; 0: no limit
  // maximum waiting time while the fleet has no endpoints; nullopt: same as ttl_us
  std::optional<std::int64_t> no_endpoint_ttl_us = {};
  // sets for each band the saturation at which its requests start to wait
  std::shared_ptr<UsageLimit> usage_limit = static_usage_limit(1);
  std::map<int, BandOptions> bands = {};  // options of the bands that have them, by priority
  BandOptions default_band = {};  // options for priorities of 0 and above that `bands` does not contain
  BandOptions default_negative_band = {};  // options for priorities below 0 that `bands` does not contain
};

class FlowControl {
 public:
  explicit FlowControl(FlowOptions options) : options_(std::move(options)) {}

  // Returns nullopt if the request waits, and its outcome if it was rejected.
  std::optional<FlowOutcome> enqueue(FlowItem item, bool pool_empty);

  // Returns the request to dispatch now. Returns nullopt if no request waits, or if the saturation (0: idle,
  // 1: no capacity) is at or above the ceiling of the first band with waiting requests, or of a band with a
  // higher priority.
  std::optional<FlowItem> next(double saturation, std::int64_t now_us);

  // Returns the bands with waiting requests whose ceiling, as of the last next(), is at or below the
  // saturation. The highest priority is first.
  std::vector<BlockedBand> blocked(double saturation) const;

  // Must be called when a dispatched request ends, with its numbers of prompt and output tokens.
  void ended(std::string_view fairness_id, std::int64_t input_tokens, std::int64_t output_tokens,
             std::int64_t now_us);

  struct Ended {
    FlowItem item;
    FlowOutcome outcome;
  };
  // Removes the requests that have waited for their maximum waiting time, in the order of arrival.
  std::vector<Ended> expire(std::int64_t now_us, bool pool_empty);
  // Returns nullopt if no request with this id waits.
  std::optional<Ended> cancel(std::uint64_t id);
  // Removes all waiting requests. Called when the program stops.
  std::vector<Ended> drain();

  std::size_t waiting() const { return waiting_.size(); }
  struct BandLoad {
    int priority;
    std::uint64_t requests, bytes;
  };
  std::vector<BandLoad> loads() const;

 private:
  // ordering key (see Ordering::key), then arrival number
  using Order = std::pair<std::int64_t, std::uint64_t>;
  using Flow = std::map<Order, FlowItem>;
  struct Band {
    BandOptions options;
    std::unique_ptr<Fairness> fairness;
    std::map<std::string, Flow, std::less<>> flows;  // a flow without waiting requests is removed
    std::uint64_t requests = 0, bytes = 0;
  };
  struct Waiting {
    int priority;
    std::string flow;
    Order order;
    std::int64_t arrived_us;
    std::int64_t ttl_us;
  };

  Band& band(int priority);
  FlowItem take(std::uint64_t id);

  const FlowOptions options_;
  std::map<int, Band, std::greater<>> bands_;  // highest priority first
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  // maximum waiting time -> (arrival time, id) of each waiting request that has this maximum
  std::map<std::int64_t, std::set<std::pair<std::int64_t, std::uint64_t>>> arrivals_;
  std::uint64_t bytes_ = 0;
  std::uint64_t arrived_ = 0;
  std::vector<FlowHead> heads_;  // used only during next()
  std::vector<int> priorities_;
  std::vector<double> ceilings_;  // ceilings that the last next() computed, in the order of priorities_
};

}  // namespace octavo::fleet
