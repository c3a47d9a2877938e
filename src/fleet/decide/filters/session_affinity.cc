// session-affinity-filter: keeps only the endpoint of the request's session, if it is a candidate.
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {
namespace {

class SessionAffinityFilter : public Filter, public SessionAffinity {
 public:
  using SessionAffinity::SessionAffinity;

  void filter(Cycle& cycle, Candidates& candidates) override {
    if (const Member* member = home(cycle, candidates)) candidates = {member};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_session_affinity_filter(Parameters& parameters, Plugins& plugins) {
  return std::make_unique<SessionAffinityFilter>(parameters, plugins);
}

}  // namespace octavo::fleet
