// One replica of a model as the fleet sees it: who it is, and what is known of it now. Plain data.
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

// A small number, so that tables by endpoint are arrays. Given out by Fleet, used again only when nothing
// refers to it any more.
using EndpointId = std::uint32_t;
inline constexpr EndpointId kNoEndpoint = ~EndpointId{0};

enum class Role : std::uint8_t { both, prefill, decode };

// Who it is. Does not change while it is in the fleet.
struct Endpoint {
  std::string name = {};                   // "host:port", unique in the fleet
  std::string url = {};                    // "http://host:port"
  std::vector<std::string> models = {};    // base models that it serves; empty if unknown: any model
  std::vector<std::string> adapters = {};  // LoRA adapters, called by name like a model
  Role role = Role::both;
  std::map<std::string, std::string> labels = {};
  std::string kv_events_endpoint = {};  // "tcp://host:5557", where its KV cache events are; "": nowhere
  std::string kv_replay_endpoint = {};  // where they can be asked for again
  int priority = 0;  // of SRV records: while one with a lower number is available, it gets no request
  int weight = 1;    // of SRV records: among those of its priority
  int bootstrap_port = 0;  // of a prefill endpoint with SGLang's transfer; otherwise 0
  std::string pod = {};    // the name of its pod; "": not known
  std::string node = {};   // the address of the machine it is on; "": not known
  int rank = 0;            // among the endpoints of its address, one for each data-parallel rank
  bool shares_port = false;  // with the other ranks: requests say which they are for
  int ranks = 0;             // data-parallel ranks at its port, as it registered; 0: its metrics say it
  int block_size = 0;        // tokens, as it registered; 0: its metrics say it

  // The name in logs and metrics: the URL, with the rank if ranks share the URL.
  std::string label() const { return shares_port ? url + "@" + std::to_string(rank) : url; }

  bool operator==(const Endpoint&) const = default;
};

// "10.0.0.1" of "10.0.0.1:8000" and "10.0.0.1"; an IPv6 address in brackets keeps them.
std::string_view ip_of(std::string_view address);

// "10.0.0.1:8000" of "10.0.0.1:8000@1", a rank that shares its port.
std::string_view address_of(std::string_view name);

// May a request be sent there?
enum class Availability : std::uint8_t {
  available,
  unprobed,   // no probe has ended yet
  starting,   // no probe has succeeded yet
  unhealthy,  // probes fail
  broken,     // its circuit breaker is open
  draining,   // its streams end, nothing new begins
};

struct AdapterState {
  std::vector<std::string> active = {};
  std::vector<std::string> waiting = {};
  int active_max = 0;
};

// Numbers that policies can read, keyed by name and by source (see decide/attribute.h).
using AttributeKey = std::pair<std::string, std::string>;
using Attributes = std::map<AttributeKey, double>;
inline constexpr double kAttributeMax = 1e300;  // of their absolute values: differences are numbers

inline constexpr std::int64_t kNeverObserved = std::numeric_limits<std::int64_t>::min();

// The endpoint's last report.
struct EndpointState {
  Availability availability = Availability::unprobed;
  std::int64_t observed_us = kNeverObserved;  // when the fields below were read
  int waiting = 0;                            // requests
  int running = 0;
  double kv_usage = 0;  // of its KV cache, 0 to 1
  int block_size = 0;   // tokens; 0 if unknown
  std::int64_t num_blocks = 0;
  double started_s = 0;       // start of the process, in seconds since 1970; 0 if not reported
  double prompt_tokens = -1;  // in all requests since then; negative if not reported
  std::shared_ptr<const AdapterState> adapters = {};  // null if unknown
  std::shared_ptr<const Attributes> attributes = {};  // null if it has none

  std::optional<double> attribute(const AttributeKey& key) const {
    if (!attributes) return std::nullopt;
    const auto found = attributes->find(key);
    return found == attributes->end() ? std::nullopt : std::optional(found->second);
  }
};

// Whether the endpoint's process is another one than before.
inline bool has_restarted(const EndpointState& before, const EndpointState& now) {
  constexpr double kSameStartS = 0.9;  // pages round to a second
  if (before.started_s > 0 && now.started_s > 0)
    return std::abs(now.started_s - before.started_s) > kSameStartS;
  return now.prompt_tokens >= 0 && now.prompt_tokens < before.prompt_tokens;
}

// An endpoint in the fleet.
struct Member {
  EndpointId id = kNoEndpoint;
  std::shared_ptr<const Endpoint> endpoint = {};
  EndpointState state = {};
};

}  // namespace octavo::fleet
