// One replica of a model in the fleet: its identity and its known state. Plain data.
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

// A small number, so that arrays can be indexed by endpoint. Fleet assigns it, and reuses it only when
// nothing refers to it any more.
using EndpointId = std::uint32_t;
inline constexpr EndpointId kNoEndpoint = ~EndpointId{0};

enum class Role : std::uint8_t { both, prefill, decode };

// Identity and description of an endpoint. It does not change while the endpoint is in the fleet.
struct Endpoint {
  std::string name = {};                   // "host:port", unique in the fleet
  std::string url = {};                    // "http://host:port"
  std::vector<std::string> models = {};    // base models that it serves; empty: unknown, so any model is
                                           // accepted
  std::vector<std::string> adapters = {};  // LoRA adapters; requests name them like models
  Role role = Role::both;
  std::map<std::string, std::string> labels = {};
  std::string kv_events_endpoint = {};  // address of its KV cache events, "tcp://host:5557"; "": none
  std::string kv_replay_endpoint = {};  // address for replays of its events; "": none
  int priority = 0;          // from SRV records: it gets no requests while an endpoint with a lower number is
                             // available
  int weight = 1;            // from SRV records: relative weight among endpoints of its priority
  int bootstrap_port = 0;    // for prefill endpoints with SGLang's transfer; otherwise 0
  std::string pod = {};      // name of its pod; "": unknown
  std::string node = {};     // address of its machine; "": unknown
  int rank = 0;              // index among the endpoints of its address, which are data-parallel ranks
  bool shares_port = false;  // other ranks have the same port: requests contain the rank
  int ranks = 0;             // registered number of data-parallel ranks at its port; 0: read it from its
                             // metrics
  int block_size = 0;        // registered number of tokens in a block; 0: read it from its metrics

  // Name for logs and metrics: the URL, and the rank if ranks share the URL.
  std::string label() const { return shares_port ? url + "@" + std::to_string(rank) : url; }

  bool operator==(const Endpoint&) const = default;
};

// Removes the port: "10.0.0.1" for "10.0.0.1:8000" and "10.0.0.1". An IPv6 address keeps its brackets.
std::string_view ip_of(std::string_view address);

// Removes the rank of an endpoint that shares its port: "10.0.0.1:8000" for "10.0.0.1:8000@1".
std::string_view address_of(std::string_view name);

// Whether a request may be sent to the endpoint, or the reason why not.
enum class Availability : std::uint8_t {
  available,
  unprobed,   // not probed yet
  starting,   // no probe has succeeded yet
  unhealthy,  // probes fail
  broken,     // its circuit breaker is open
  draining,   // running requests continue, new ones are not accepted
};

struct AdapterState {
  std::vector<std::string> active = {};
  std::vector<std::string> waiting = {};
  int active_max = 0;
};

// Numbers that policies can read. Key: name and source (see decide/attribute.h).
using AttributeKey = std::pair<std::string, std::string>;
using Attributes = std::map<AttributeKey, double>;
inline constexpr double kAttributeMax = 1e300;  // limit of absolute values, so that differences are finite

inline constexpr std::int64_t kNeverObserved = std::numeric_limits<std::int64_t>::min();

// State from the endpoint's last report.
struct EndpointState {
  Availability availability = Availability::unprobed;
  std::int64_t observed_us = kNeverObserved;  // time when the fields below were read
  int waiting = 0;                            // number of waiting requests
  int running = 0;
  double kv_usage = 0;  // used fraction of its KV cache, 0 to 1
  int block_size = 0;   // tokens in a block; 0: unknown
  std::int64_t num_blocks = 0;
  double started_s = 0;       // start time of the process, in seconds since 1970; 0: not reported
  double prompt_tokens = -1;  // number of prompt tokens since the process started; negative: not reported
  std::shared_ptr<const AdapterState> adapters = {};  // null: unknown
  std::shared_ptr<const Attributes> attributes = {};  // null: no attributes

  std::optional<double> attribute(const AttributeKey& key) const {
    if (!attributes) return std::nullopt;
    const auto found = attributes->find(key);
    return found == attributes->end() ? std::nullopt : std::optional(found->second);
  }
};

// Whether the endpoint's process has restarted between the two reports.
inline bool has_restarted(const EndpointState& before, const EndpointState& now) {
  constexpr double kSameStartS = 0.9;  // tolerance, since pages round to a second
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
