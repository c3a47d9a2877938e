// session-affinity-scorer: the endpoint of the request's session has the score 1, all other endpoints have
// the score 0.
#include <algorithm>

#include "fleet/decide/plugin_table.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {
namespace {

class SessionAffinityScorer : public Scorer, public SessionAffinity {
 public:
  using SessionAffinity::SessionAffinity;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Member* member = home(cycle, candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = candidates[i] == member ? 1 : 0;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_session_affinity_scorer(Parameters& parameters, Plugins& plugins) {
  return std::make_unique<SessionAffinityScorer>(parameters, plugins);
}

}  // namespace octavo::fleet
