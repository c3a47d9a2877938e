// An endpoint is one replica of a model, or one data-parallel rank of a replica. This file has its
// description and its last known state.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo::fleet {

// Small number, used as an array index. Fleet assigns the id, and reuses it after Fleet::release().
using EndpointId = std::uint32_t;
inline constexpr EndpointId kNoEndpoint = ~EndpointId{0};

enum class Role : std::uint8_t { both, prefill, decode };

// Identity and description of an endpoint. Fleet::describe() replaces the whole object.
struct Endpoint {
  std::string name = {};                   // "host:port", unique in the fleet
  std::string url = {};                    // "http://host:port"
  // base models; empty: unknown, so the endpoint gets requests for any model
  std::vector<std::string> models = {};
  // names of LoRA adapters, which requests can use in the field `model`
  std::vector<std::string> adapters = {};
  Role role = Role::both;
  std::map<std::string, std::string> labels = {};
  // address of the KV cache events, such as "tcp://host:5557"; "": no events
  std::string kv_events_endpoint = {};
  std::string kv_replay_endpoint = {};  // address for replays of KV cache events; "": no replays
  int priority = 0;  // priority of the SRV record: routing prefers endpoints with a lower number
  // weight of the SRV record: relative share of requests among endpoints of the same priority
  int weight = 1;
  int bootstrap_port = 0;    // port for SGLang's KV transfer, of a prefill endpoint; 0: not used
  std::string pod = {};      // name of the Kubernetes pod; "": unknown
  std::string node = {};     // address of the machine; "": unknown
  int rank = 0;              // data-parallel rank among the endpoints of one address
  bool shares_port = false;  // several ranks use the same port, so a request must name its rank
  int ranks = 0;             // configured number of data-parallel ranks; 0: read it from the metrics
  int block_size = 0;  // configured number of tokens per block; 0: read it from the metrics

  // Returns the name for logs and metrics: the URL, followed by "@rank" if ranks share the URL.
  std::string label() const { return shares_port ? url + "@" + std::to_string(rank) : url; }

  bool operator==(const Endpoint&) const = default;
};

// Removes the port from an address: returns "10.0.0.1" for "10.0.0.1:8000" and for "10.0.0.1". An IPv6
// address keeps its brackets.
std::string_view ip_of(std::string_view address);

// Removes the rank from an endpoint's name: returns "10.0.0.1:8000" for "10.0.0.1:8000@1".
std::string_view address_of(std::string_view name);

// Whether an endpoint gets requests, and if not, why.
enum class Availability : std::uint8_t {
  available,
  unprobed,   // no probe has finished yet
  starting,   // no probe has succeeded yet
  unhealthy,  // the last probes failed
  // the circuit breaker is open
  broken,
  draining,  // running requests continue, and new requests are refused
};

struct AdapterState {
  std::vector<std::string> active = {};
  std::vector<std::string> waiting = {};
  int active_max = 0;
};

// Numbers of an endpoint that policies read, by name and source (see decide/attribute.h).
using AttributeKey = std::pair<std::string, std::string>;
using Attributes = std::map<AttributeKey, double>;
// Maximum absolute value of an attribute. The limit keeps the difference of two attributes finite.
inline constexpr double kAttributeMax = 1e300;

inline constexpr std::int64_t kNeverObserved = std::numeric_limits<std::int64_t>::min();

// State of an endpoint, read from its last metrics page.
struct EndpointState {
  Availability availability = Availability::unprobed;
  std::int64_t observed_us = kNeverObserved;  // time at which the fields below were read
  int waiting = 0;
  int running = 0;
  double kv_usage = 0;  // used fraction of the KV cache, 0 to 1
  int block_size = 0;   // tokens per block; 0: unknown
  std::int64_t num_blocks = 0;
  double started_s = 0;       // start time of the process, in seconds since 1970; 0: not reported
  double prompt_tokens = -1;  // prompt tokens since the process started; negative: not reported
  std::shared_ptr<const AdapterState> adapters = {};  // null: unknown
  std::shared_ptr<const Attributes> attributes = {};

  std::optional<double> attribute(const AttributeKey& key) const {
    if (!attributes) return std::nullopt;
    const auto found = attributes->find(key);
    return found == attributes->end() ? std::nullopt : std::optional(found->second);
  }
};

// Returns whether the endpoint's process restarted between the two states.
inline bool has_restarted(const EndpointState& before, const EndpointState& now) {
  constexpr double kSameStartS = 0.9;  // tolerance in seconds, since metrics round the start time
  if (before.started_s > 0 && now.started_s > 0)
    return std::abs(now.started_s - before.started_s) > kSameStartS;
  return now.prompt_tokens >= 0 && now.prompt_tokens < before.prompt_tokens;
}

struct Member {
  EndpointId id = kNoEndpoint;
  std::shared_ptr<const Endpoint> endpoint = {};
  EndpointState state = {};
};

}  // namespace octavo::fleet
