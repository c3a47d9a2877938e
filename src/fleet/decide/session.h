// Session affinity: reads the session id of a request, and remembers the endpoint of each session.
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

// A request header (such as "x-session-id") or a cookie that contains the session id.
struct SessionSource {
  std::string header = {};
  std::string cookie = {};  // name of the cookie; "": the session id is the value of the header `header`

  std::string_view id(const RouteRequest& request) const;
};

std::string_view session_of(std::span<const SessionSource> sources, const RouteRequest& request);

// session-id-producer: configures the sources of session ids. The session-affinity plugins read `sources`.
class SessionIdProducer : public Plugin {
 public:
  std::vector<SessionSource> sources;
};

// agent-identity: reads the session ids of agents. Without a fairness header, the session is also the flow
// of the request.
class AgentIdentity : public SessionIdProducer {};

// Base of session-affinity-filter and session-affinity-scorer. Strategies:
// - encoded_endpoint_header: A response header names the endpoint. The client sends it with its next request.
// - session_id: Requests of a session go to the endpoint of the first request, while it is available.
class SessionAffinity : public virtual Plugin {
 public:
  SessionAffinity(Parameters& parameters, Plugins& plugins);

  void sent(const Cycle& cycle, EndpointId endpoint) override;
  void add_answer_headers(const Member& endpoint, HeaderFields& fields) const override;
  void forget(EndpointId endpoint) override { keys_.forget(endpoint); }
  void expire(std::int64_t now_us) override { keys_.expire(now_us); }

 protected:
  // Returns null if the endpoint of the request's session is not a candidate.
  const Member* home(const Cycle& cycle, std::span<const Member* const> candidates);

 private:
  void read_token(Parameters& parameters, Plugins& plugins);
  void read_ids(Parameters& parameters, Plugins& plugins);

  // response header of the strategy encoded_endpoint_header; "": the strategy is session_id, and the members
  // below are used
  std::string token_header_;
  std::vector<SessionSource> sources_;
  StickyKeys keys_;
  // whether the session's endpoint was available in the last call of home()
  bool home_was_available_ = false;
};

}  // namespace octavo::fleet
