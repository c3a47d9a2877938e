// max-score-picker: sorts by score, best first. Endpoints with equal scores are in random order.
#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class MaxScorePicker : public Picker {
 public:
  void pick(Cycle& cycle, std::vector<Score>& ranking) override { sort_by_score(ranking, cycle.draws); }
};

}  // namespace

std::unique_ptr<Plugin> make_max_score_picker(Parameters& parameters, Plugins&) {
  return make_picker<MaxScorePicker>(parameters);
}

}  // namespace octavo::fleet
