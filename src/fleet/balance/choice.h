// The requirements of a request, and the endpoint chosen for it.
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

// Addresses that a gateway allows: "ip:port", or "ip" for all its ports. nullopt: all addresses.
using Subset = std::optional<std::vector<std::string>>;

struct ChoiceOptions {
  Role part = Role::both;  // the part of the request's work
  std::span<const EndpointId> excluded = {};
  const Subset* subset = nullptr;       // allowed endpoints; null: all
  int priority = 0;                     // priority for the policy's admitters
  EndpointId burst_home = kNoEndpoint;  // endpoint that was chosen for a burst of equal prompts
  bool bodiless = false;                // the request has no prompt, so it is never refused because of load
  bool rested = false;                  // excludes endpoints that are paused (Retry-After)
  bool computed = false;                // another endpoint has computed the prompt
  std::string_view worker = {};         // name of the endpoint to use if it is available; "": any
  bool explain = false;
  StepTimer* timer = nullptr;              // measures the plugins' times; null: no measurement
  std::optional<std::uint64_t> draw = {};  // random bits to use instead of the balancer's
};

struct Choice {
  struct Picked {
    std::string name;
    double score = 0;
  };

  std::shared_ptr<const Endpoint> endpoint = {};  // null: no endpoint was chosen
  Booking booking = {};
  std::int64_t new_tokens = 0;       // number of prompt tokens that the endpoint must compute
  std::vector<Picked> picked = {};   // the endpoint, followed by its fallbacks
  std::string profile = {};          // name of the profile that the request's header selected; "": none
  std::string prefiller = {};        // name of the endpoint that computes the prompt; "": the chosen one
  std::string encoders = {};         // names of the endpoints that encode images, separated by commas; "":
                                     // the endpoint that computes the prompt
  std::string kv_source = {};        // name of the endpoint that has more of the prompt cached; "": none
  HeaderFields answer_headers = {};  // header fields of the answer, which the client sends with its next
                                     // request
  std::optional<LatencyInputs> inputs = {};  // inputs for Balancer::took()
  std::string explanation = {};              // JSON; set with ChoiceOptions::explain
};

// The reason why a request gets no endpoint, in llm-d's terms.
struct Refusal {
  int status = 0;  // HTTP status
  std::string message = {};
  std::string_view dropped_reason = {};  // value of x-llm-d-request-dropped-reason; "": not sent
};

enum class Outcome : std::uint8_t {
  success,
  failure,  // the endpoint failed: counts for its circuit breaker
  neither,  // the client disconnected, the request was invalid, or the cause is unknown
};

// The reason why a request should not wait any longer for its endpoint.
enum class Trouble : std::uint8_t {
  unhealthy,  // health probes of the endpoint fail
  forgotten,  // the request waits for its first byte, but the endpoint's metrics show no request
  stalled,    // like `forgotten`, but after the first byte, and for a longer time
  restarted,  // the process to which the request was sent has ended
};

}  // namespace octavo::fleet
