// Requirements of a request, and the endpoint chosen for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/decide/inflight.h"
#include "fleet/decide/latency.h"
#include "fleet/decide/plugin.h"
#include "fleet/view/route_request.h"

namespace octavo::fleet {

// Addresses that a gateway allows: "ip:port", or "ip" for all ports. nullopt: all addresses.
using Subset = std::optional<std::vector<std::string>>;

struct ChoiceOptions {
  Role part = Role::both;  // role of the endpoint to choose
  std::span<const EndpointId> excluded = {};
  const Subset* subset = nullptr;       // allowed endpoints; null: all endpoints
  int priority = 0;                     // for the policy's admitters
  EndpointId burst_home = kNoEndpoint;  // endpoint from place_burst()
  bool bodiless = false;                // the request has no prompt, so load is no reason to refuse it
  bool rested = false;                  // exclude endpoints that are paused by Retry-After
  bool computed = false;                // another endpoint has computed the prompt
  std::string_view worker = {};         // name of the endpoint to use if it is available; "": any endpoint
  bool explain = false;
  StepTimer* timer = nullptr;              // null: the times of plugins are not measured
  std::optional<std::uint64_t> draw = {};  // random bits instead of Balancer::draw()
};

struct Choice {
  struct Picked {
    std::string name;
    double score = 0;
  };

  std::shared_ptr<const Endpoint> endpoint = {};  // null: no endpoint was chosen
  Booking booking = {};
  std::int64_t new_tokens = 0;      // prompt tokens that the endpoint must compute
  std::vector<Picked> picked = {};  // the endpoint, then its fallbacks
  // name of the profile that a request header selected; "": there is only one profile
  std::string profile = {};
  std::string prefiller = {};  // name of the prefill endpoint; "": `endpoint` computes the prompt
  // names of the encode endpoints, separated by commas; "": the endpoint that computes the prompt also
  // encodes images
  std::string encoders = {};
  std::string kv_source = {};  // name of the endpoint from which to fetch KV blocks; "": no endpoint
  // header fields for the answer; the client sends them with its next request
  HeaderFields answer_headers = {};
  std::optional<LatencyInputs> inputs = {};  // argument for Balancer::took()
  std::string explanation = {};              // JSON; empty without ChoiceOptions::explain
};

// Why a request gets no endpoint, in llm-d's terms.
struct Refusal {
  int status = 0;
  std::string message = {};
  std::string_view dropped_reason = {};  // value of the header x-llm-d-request-dropped-reason; "": no header
};

enum class Outcome : std::uint8_t {
  success,
  failure,  // the endpoint failed; counts for its circuit breaker
  neither,  // the client disconnected, the request was invalid, or the cause is unknown
};

// Why a request should stop waiting for its endpoint.
enum class Trouble : std::uint8_t {
  unhealthy,  // health probes fail
  forgotten,  // before the first byte: the endpoint's metrics show no request
  stalled,    // after the first byte: the same, for a longer time
  restarted,  // the process that received the request has ended
};

}  // namespace octavo::fleet
