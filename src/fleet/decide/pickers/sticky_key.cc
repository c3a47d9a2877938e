// sticky-key-picker (SGLang's manual): requests with the same routing key go to the same endpoint while it
// is available. The parameter `assignment` decides how to choose the endpoint of a new key: random,
// min_load (fewest requests) or min_group (fewest keys).
#include <algorithm>
#include <array>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/sticky_keys.h"

namespace octavo::fleet {
namespace {

class StickyKeyPicker : public Picker {
 public:
  StickyKeys keys;
  std::string assignment = "random";

  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    shuffle(ranking, cycle.draws);
    const EndpointId found = keys.find(cycle.request.routing_key);
    const auto home = std::ranges::find(ranking, found, &Score::endpoint);
    if (home != ranking.end()) return void(std::rotate(ranking.begin(), home, home + 1));
    const auto burden = [&](const Score& score) {
      return assignment == "min_load" ? std::int64_t{cycle.inflight.load(score.endpoint).requests}
                                      : keys.keys_of(score.endpoint);
    };
    if (assignment != "random") std::ranges::stable_sort(ranking, {}, burden);
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    if (!cycle.request.routing_key.empty()) keys.put(cycle.request.routing_key, endpoint, cycle.now_us);
  }
  void forget(EndpointId endpoint) override { keys.forget(endpoint); }
  void expire(std::int64_t now_us) override { keys.expire(now_us); }
  void finished(std::string_view routing_key) override { keys.forget(routing_key); }
};

}  // namespace

std::unique_ptr<Plugin> make_sticky_key_picker(Parameters& parameters, Plugins&) {
  auto picker = make_picker<StickyKeyPicker>(parameters);
  parameters.read("assignment", picker->assignment);
  constexpr std::array<std::string_view, 3> kAssignments{"random", "min_load", "min_group"};
  if (std::ranges::find(kAssignments, picker->assignment) == kAssignments.end())
    parameters.fail("assignment", "must be random, min_load or min_group");
  parameters.read_duration("maxIdle", picker->keys.idle_max_us);
  parameters.read("maxKeys", picker->keys.keys_max, 1, 1 << 26);
  return picker;
}

}  // namespace octavo::fleet
