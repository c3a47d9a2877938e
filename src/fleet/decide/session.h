// A request's session, and the endpoint that it stays with.
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

// A session id in a header ("x-session-id") or in a cookie.
struct SessionSource {
  std::string header = {};
  std::string cookie = {};  // of that name, in the header "cookie"; "": the whole header

  // "": the request has none.
  std::string_view id(const RouteRequest& request) const;
};

// The session id from the first source that the request has.
std::string_view session_of(std::span<const SessionSource> sources, const RouteRequest& request);

// session-id-producer: names the sources of session ids.
class SessionIdProducer : public Plugin {
 public:
  std::vector<SessionSource> sources;
};

// agent-identity: also the default flow of a request without a fairness header.
class AgentIdentity : public SessionIdProducer {};

// Common part of session-affinity-filter and session-affinity-scorer. Strategies:
//   encoded_endpoint_header: the response's header names the endpoint, and the client sends it again;
//   session_id: the client's id stays with the endpoint of its first request, while that one is available.
class SessionAffinity : public virtual Plugin {
 public:
  SessionAffinity(Parameters& parameters, Plugins& plugins);

  void sent(const Cycle& cycle, EndpointId endpoint) override;
  void add_answer_headers(const Member& endpoint, HeaderFields& fields) const override;
  void forget(EndpointId endpoint) override { keys_.forget(endpoint); }
  void expire(std::int64_t now_us) override { keys_.expire(now_us); }

 protected:
  // The candidate that has the request's session; may be null.
  const Member* home(const Cycle& cycle, std::span<const Member* const> candidates);

 private:
  void read_token(Parameters& parameters, Plugins& plugins);
  void read_ids(Parameters& parameters, Plugins& plugins);

  std::string token_header_;            // encoded_endpoint_header's; "": session_id, and the rest counts
  std::vector<SessionSource> sources_;
  StickyKeys keys_;
  bool home_was_there_ = false;  // when the last request's home was asked for
};

}  // namespace octavo::fleet
