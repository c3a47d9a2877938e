// session-affinity-scorer: who has the request's session.
#include <algorithm>

#include "fleet/decide/plugin_table.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {
namespace {

class SessionAffinityScorer : public Scorer {
 public:
  SessionAffinityScorer(Parameters& parameters, Plugins& plugins) : affinity_(parameters, plugins) {}

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Member* home = affinity_.home(cycle, candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = candidates[i] == home ? 1 : 0;
  }
  void sent(const Cycle& cycle, EndpointId endpoint) override { affinity_.sent(cycle, endpoint); }
  void forget(EndpointId endpoint) override { affinity_.forget(endpoint); }
  void expire(std::int64_t now_us) override { affinity_.expire(now_us); }

 private:
  SessionAffinity affinity_;
};

}  // namespace

std::unique_ptr<Plugin> make_session_affinity_scorer(Parameters& parameters, Plugins& plugins) {
  return std::make_unique<SessionAffinityScorer>(parameters, plugins);
}

}  // namespace octavo::fleet
