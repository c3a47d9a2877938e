// Who gets a request: the endpoints, what is known of them, the plugins and what is in flight, together. Safe
// from any thread; decisions are taken one after the other, so that each sees the ones before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "fleet/decide/burst.h"
#include "fleet/decide/latency.h"
#include "fleet/decide/pipeline.h"
#include "fleet/decide/saturation.h"
#include "fleet/health/endpoint_health.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

struct Pick {
  struct Endpoint {
    std::string name;  // "ip:port"
    double score = 0;
  };
  std::vector<Endpoint> endpoints;   // the chosen one, then those to fall back on
  std::string prefiller = {};        // who computes the prompt for it; "": it does
  std::string encoders = {};         // who encodes its images, commas between; "": whoever computes it
  std::string kv_source = {};        // who holds more of the prompt than who computes it; "": nobody
  HeaderFields answer_headers = {};  // for the client to send again
  std::optional<LatencyInputs> inputs = {};  // of what learns from how long its answer takes
  Booking booking;                           // at the chosen one; give it back with ended()
};

// Why there is none, in llm-d's words.
struct Refusal {
  int status = 0;  // HTTP
  std::string message = {};
  std::string_view dropped_reason = {};  // for x-llm-d-request-dropped-reason; "": none
};

// The addresses that a gateway allows, "ip:port" or "ip" for all ports of it. nullopt: all.
using Subset = std::optional<std::vector<std::string>>;

class EndpointPicker {
 public:
  static Result<std::unique_ptr<EndpointPicker>> make(PipelineConfig config);

  // burst_home: where it was placed together with others.
  std::expected<Pick, Refusal> pick(const RouteRequest& request, const Subset& subset, int priority = 0,
                                    EndpointId burst_home = kNoEndpoint);
  // For a request without a body: by its headers, else any available endpoint.
  std::expected<Pick, Refusal> pick_any(const RouteRequest& request, const Subset& subset);
  // What the plugins read of a request's headers, see scan_request().
  std::span<const std::string> headers() const { return pipeline_.headers(); }
  // The agent's session that the request belongs to; "": none.
  std::string_view agent(const RouteRequest& request) const;
  // Who places requests that come at the same moment; null: nobody does.
  const BurstPrefixProducer* burst() const { return burst_; }
  // Where a request may be placed together with others.
  std::vector<BurstEndpoint> burst_endpoints(const RouteRequest& request, const Subset& subset) const;
  void first_token(Booking& booking);
  void grow(Booking& booking, std::int64_t tokens);
  void ended(Booking& booking);
  // What the answer at the booked endpoint took, negative where there was none; before ended().
  void took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms, double tpot_ms);

  // The endpoints that there are from now on: those that are not among them go, once nothing is in flight
  // there.
  void set_endpoints(std::vector<Endpoint> endpoints);
  // The LoRA adapters that the endpoint of this name serves, if it is still there.
  void set_adapters(std::string_view name, std::vector<std::string> adapters);

  // What came of asking an endpoint for its metrics: one that does not answer three times in a row gets no
  // requests.
  struct Scrape {
    EndpointId endpoint = kNoEndpoint;
    std::optional<bool> answered = {};        // nothing: somebody else was asked
    std::optional<EndpointState> state = {};  // as read; availability does not count
    Attributes attributes = {};               // what is known now, beside those of the state; others stay
  };
  void scraped(std::vector<Scrape> scrapes);
  void expire();  // about once a second: old prefixes go

  // What the endpoint has told of its prefix cache.
  void cache_changed(const Member& endpoint, std::span<const CacheEvent> events);

  double saturation(const SaturationDetector& detector);

  std::uint64_t draw() { return random_bits(seed_, 1, ++draws_); }  // bits that nobody can guess

  // The URL of any endpoint that gets requests; "": there is none.
  std::string any_url();

  std::shared_ptr<const FleetView> view() const { return fleet_.view(); }
  const Fleet& fleet() const { return fleet_; }

 private:
  explicit EndpointPicker(Pipeline pipeline);
  Candidates candidates(const FleetView& view, const RouteRequest& request, const Subset& subset) const;
  std::string prefiller(Cycle& cycle, EndpointId answering, const Subset& subset);
  std::string encoders(Cycle& cycle, const Subset& subset);
  std::string kv_source(Cycle& cycle, std::string_view computing, const Subset& subset);
  Pick booked(const Decision& decision, const Cycle& cycle);
  bool take(Scrape& scrape, Member& member);
  Result<> add(Endpoint endpoint);
  void remove(EndpointId id);
  void forget(EndpointId id);
  void release_if_idle(EndpointId id);

  struct Slot {
    std::unique_ptr<EndpointHealth> health;  // null: no endpoint
    bool removed = false;                    // gone from the fleet, its last requests under way
  };

  Fleet fleet_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> draws_ = 0;
  std::mutex caches_;  // what endpoints hold, while it changes: decisions do not wait; after mutex_
  std::mutex mutex_;   // of all below
  Pipeline pipeline_;
  LatencyPredictor* const predictor_;       // the pipeline's; null: it has none
  const BurstPrefixProducer* const burst_;  // as well
  KvSource* const kv_source_;               // as well
  const AgentIdentity* const agents_;       // as well
  Inflight inflight_;
  std::vector<Slot> slots_;  // [EndpointId]
  Decision decision_;
};

}  // namespace octavo::fleet
