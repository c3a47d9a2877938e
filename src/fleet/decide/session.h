// A request's session, and the endpoint that it stays with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/decide/plugin.h"
#include "fleet/decide/sticky_keys.h"

namespace octavo::fleet {

class Parameters;
class Plugins;

// What stands in a header ("x-session-id"), or in a cookie.
struct SessionSource {
  std::string header = {};
  std::string cookie = {};  // of that name, in the header "cookie"; "": the whole header

  // "": the request has none.
  std::string_view id(const RouteRequest& request) const;
};

// session-id-producer: says where sessions stand.
class SessionIdProducer : public Plugin {
 public:
  SessionSource source;
};

// What session-affinity-filter and session-affinity-scorer have in common: a session stays with who got its
// first request, until that one cannot get one.
class SessionAffinity {
 public:
  SessionAffinity(Parameters& parameters, Plugins& plugins);

  // Who of the candidates has the request's session; null: nobody.
  const Member* home(const Cycle& cycle, std::span<const Member* const> candidates);
  void sent(const Cycle& cycle, EndpointId endpoint);
  void forget(EndpointId endpoint) { keys_.forget(endpoint); }
  void expire(std::int64_t now_us) { keys_.expire(now_us); }

 private:
  std::string_view session(const RouteRequest& request) const;

  std::vector<SessionSource> sources_;  // the first one that a request has counts
  StickyKeys keys_;
  bool home_was_there_ = false;  // when the last request's home was asked for
};

}  // namespace octavo::fleet
