// A request's session, and the endpoint that its requests use.
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

// A header ("x-session-id") or cookie that contains a session id.
struct SessionSource {
  std::string header = {};
  std::string cookie = {};  // name of a cookie in the header "cookie"; "": the session id is the whole header

  // "": the request has no session id.
  std::string_view id(const RouteRequest& request) const;
};

// The session id from the first source that the request has.
std::string_view session_of(std::span<const SessionSource> sources, const RouteRequest& request);

// session-id-producer: configures the sources of session ids.
class SessionIdProducer : public Plugin {
 public:
  std::vector<SessionSource> sources;
};

// agent-identity: its session is also the default flow for requests without a fairness header.
class AgentIdentity : public SessionIdProducer {};

// Base of session-affinity-filter and session-affinity-scorer. Strategies:
//   encoded_endpoint_header: the response's header names the endpoint, and the client sends it again;
//   session_id: a session id stays with the endpoint of its first request while this endpoint is available.
class SessionAffinity : public virtual Plugin {
 public:
  SessionAffinity(Parameters& parameters, Plugins& plugins);

  void sent(const Cycle& cycle, EndpointId endpoint) override;
  void add_answer_headers(const Member& endpoint, HeaderFields& fields) const override;
  void forget(EndpointId endpoint) override { keys_.forget(endpoint); }
  void expire(std::int64_t now_us) override { keys_.expire(now_us); }

 protected:
  // The candidate that has the request's session; null: none.
  const Member* home(const Cycle& cycle, std::span<const Member* const> candidates);

 private:
  void read_token(Parameters& parameters, Plugins& plugins);
  void read_ids(Parameters& parameters, Plugins& plugins);

  std::string token_header_;  // header for encoded_endpoint_header; "": the strategy is session_id,
                              // which uses the members below
  std::vector<SessionSource> sources_;
  StickyKeys keys_;
  bool home_was_there_ = false;  // whether the last request's endpoint was available
};

}  // namespace octavo::fleet
