// Session affinity: the session of a request, and the endpoint of each session.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/decide/plugin.h"
#include "fleet/decide/sticky_keys.h"

namespace octavo::fleet {

class Parameters;
class Plugins;

// Header (such as "x-session-id") or cookie with a session id.
struct SessionSource {
  std::string header = {};
  std::string cookie = {};  // name in the header "cookie"; "": the session id is the value of `header`

  // Returns "" if the request has no session id.
  std::string_view id(const RouteRequest& request) const;
};

// Returns the session id from the first source that the request contains.
std::string_view session_of(std::span<const SessionSource> sources, const RouteRequest& request);

// session-id-producer: configures the sources of session ids.
class SessionIdProducer : public Plugin {
 public:
  std::vector<SessionSource> sources;
};

// agent-identity: its session is also the default flow of requests without a fairness header.
class AgentIdentity : public SessionIdProducer {};

// Base of session-affinity-filter and session-affinity-scorer. Strategies:
// - encoded_endpoint_header: a response header names the endpoint, and the client returns this header.
// - session_id: the requests of a session go to the endpoint of its first request, while it is available.
class SessionAffinity : public virtual Plugin {
 public:
  SessionAffinity(Parameters& parameters, Plugins& plugins);

  void sent(const Cycle& cycle, EndpointId endpoint) override;
  void add_answer_headers(const Member& endpoint, HeaderFields& fields) const override;
  void forget(EndpointId endpoint) override { keys_.forget(endpoint); }
  void expire(std::int64_t now_us) override { keys_.expire(now_us); }

 protected:
  // Returns the candidate that has the request's session; null if none exists.
  const Member* home(const Cycle& cycle, std::span<const Member* const> candidates);

 private:
  void read_token(Parameters& parameters, Plugins& plugins);
  void read_ids(Parameters& parameters, Plugins& plugins);

  // response header of encoded_endpoint_header; "": the strategy is session_id, which uses the members below
  std::string token_header_;
  std::vector<SessionSource> sources_;
  StickyKeys keys_;
  bool home_was_there_ = false;  // the endpoint of the last request's session was available
};

}  // namespace octavo::fleet
