// The needs of a request, and the endpoint that it gets.
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

// The addresses that a gateway allows, "ip:port" or "ip" for all its ports. nullopt: all.
using Subset = std::optional<std::vector<std::string>>;

struct ChoiceOptions {
  Role part = Role::both;  // of the request's work
  std::span<const EndpointId> excluded = {};
  const Subset* subset = nullptr;       // null for all endpoints
  int priority = 0;                     // for the policy's admitters
  EndpointId burst_home = kNoEndpoint;  // where the request was placed together with others
  bool bodiless = false;                // a request without a prompt: load is no reason to refuse it
  bool rested = false;                  // no endpoint that has requested a pause (Retry-After)
  bool computed = false;                // another endpoint has computed the prompt
  std::string_view worker = {};         // name of the endpoint to take while it is available; "": any
  bool explain = false;
  StepTimer* timer = nullptr;              // measures the plugins; may be null
  std::optional<std::uint64_t> draw = {};  // random bits in place of the balancer's
};

struct Choice {
  struct Picked {
    std::string name;
    double score = 0;
  };

  std::shared_ptr<const Endpoint> endpoint = {};  // null: none
  Booking booking = {};
  std::int64_t new_tokens = 0;       // tokens of the prompt that the endpoint does not hold
  std::vector<Picked> picked = {};   // the endpoint, then those to fall back on
  std::string prefiller = {};        // name of the endpoint that computes the prompt; "": the chosen one
  std::string encoders = {};         // names of the endpoints that encode images, separated by commas
  std::string kv_source = {};        // name of the endpoint that holds more of the prompt; "": none
  HeaderFields answer_headers = {};  // for the client to send again
  std::optional<LatencyInputs> inputs = {};  // for Balancer::took()
  std::string explanation = {};              // JSON, with ChoiceOptions::explain
};

// Why a request gets no endpoint, in llm-d's words.
struct Refusal {
  int status = 0;  // HTTP
  std::string message = {};
  std::string_view dropped_reason = {};  // for x-llm-d-request-dropped-reason; "": none
};

enum class Outcome : std::uint8_t {
  success,
  failure,  // the endpoint's fault: counts for its circuit breaker
  neither,  // the client left, or the request was at fault, or the cause is not known
};

// Why a request should not wait for its endpoint any longer.
enum class Trouble : std::uint8_t {
  unhealthy,  // probes fail
  forgotten,  // the endpoint's metrics show no request, while this one waits for its first byte
  stalled,    // the same for longer, after the first byte
  restarted,  // the request was sent to a process that has ended
};

}  // namespace octavo::fleet
