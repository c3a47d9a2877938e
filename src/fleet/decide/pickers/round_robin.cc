// round-robin-picker: sorts endpoints by id, beginning after the endpoint that was picked last.
#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class RoundRobinPicker : public Picker {
 public:
  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    std::ranges::sort(ranking, {}, &Score::endpoint);
    const auto next = std::ranges::upper_bound(ranking, last_, {}, &Score::endpoint);
    std::ranges::rotate(ranking, next != ranking.end() ? next : ranking.begin());
    if (!cycle.trial) last_ = ranking.front().endpoint;
  }

 private:
  EndpointId last_ = kNoEndpoint;
};

}  // namespace

std::unique_ptr<Plugin> make_round_robin_picker(Parameters& parameters, Plugins&) {
  return make_picker<RoundRobinPicker>(parameters);
}

}  // namespace octavo::fleet
