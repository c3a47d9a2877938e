// session-affinity-filter: who has the request's session alone, where that one is among the candidates.
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {
namespace {

class SessionAffinityFilter : public Filter {
 public:
  SessionAffinityFilter(Parameters& parameters, Plugins& plugins) : affinity_(parameters, plugins) {}

  void filter(Cycle& cycle, Candidates& candidates) override {
    if (const Member* home = affinity_.home(cycle, candidates)) candidates = {home};
  }
  void sent(const Cycle& cycle, EndpointId endpoint) override { affinity_.sent(cycle, endpoint); }
  void forget(EndpointId endpoint) override { affinity_.forget(endpoint); }
  void expire(std::int64_t now_us) override { affinity_.expire(now_us); }

 private:
  SessionAffinity affinity_;
};

}  // namespace

std::unique_ptr<Plugin> make_session_affinity_filter(Parameters& parameters, Plugins& plugins) {
  return std::make_unique<SessionAffinityFilter>(parameters, plugins);
}

}  // namespace octavo::fleet
