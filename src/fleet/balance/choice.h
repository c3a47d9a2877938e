// The arguments and the result of Balancer::choose().
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

// Endpoints that a gateway allows: "ip:port", or "ip" for all ports of the address. nullopt: all endpoints
// are allowed.
using Subset = std::optional<std::vector<std::string>>;

struct ChoiceOptions {
  Role part = Role::both;
  std::span<const EndpointId> excluded = {};
  const Subset* subset = nullptr;  // null: all endpoints are allowed
  int priority = 0;
  EndpointId burst_home = kNoEndpoint;  // result of place_burst()
  // no admitters, and no prefill, encode or KV source endpoint; if the filters remove all endpoints, a random
  // endpoint is chosen
  bool bodiless = false;
  bool rested = false;
  bool computed = false;
  std::string_view worker = {};         // name of the endpoint to use if it is available; "": any endpoint
  bool explain = false;
  StepTimer* timer = nullptr;              // null: the plugins' times are not measured
  std::optional<std::uint64_t> draw = {};  // random bits to use instead of Balancer::draw()
};

struct Choice {
  struct Picked {
    std::string name;
    double score = 0;
  };

  std::shared_ptr<const Endpoint> endpoint = {};  // null: no endpoint was chosen
  Booking booking = {};
  std::int64_t new_tokens = 0;
  std::vector<Picked> picked = {};  // the chosen endpoint, followed by its fallbacks
  // name of the profile that a request header selected; "": the policy has only one profile
  std::string profile = {};
  std::string prefiller = {};  // name of the prefill endpoint; "": `endpoint` computes the prompt
  // comma-separated names of the encode endpoints; "": the endpoint that computes the prompt also encodes
  // images and audio
  std::string encoders = {};
  std::string kv_source = {};  // name of the endpoint to fetch KV blocks from; "": none
  // Header fields for the response. The client sends them back with its next request.
  HeaderFields answer_headers = {};
  std::optional<LatencyInputs> inputs = {};  // to pass to Balancer::took()
  std::string explanation = {};              // JSON; "" if ChoiceOptions::explain is false
};

// Why a request gets no endpoint, as in llm-d.
struct Refusal {
  int status = 0;
  std::string message = {};
  std::string_view dropped_reason = {};
};

enum class Outcome : std::uint8_t {
  success,
  failure,  // the endpoint failed, which its circuit breaker counts
  neither,  // the client disconnected, the request was invalid, or the cause is unknown
};

// Why a request should not wait any longer for its endpoint.
enum class Trouble : std::uint8_t {
  unhealthy,
  forgotten,  // the client has received no byte, and the endpoint's metrics show no running request
  stalled,  // the stream has begun, and the metrics show no running request for longer than `forgotten` needs
  restarted,  // the process that received the request has ended
};

}  // namespace octavo::fleet
