// random-picker: sorts endpoints randomly, independent of the scores.
#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class RandomPicker : public Picker {
 public:
  void pick(Cycle& cycle, std::vector<Score>& ranking) override { shuffle(ranking, cycle.draws); }
};

}  // namespace

std::unique_ptr<Plugin> make_random_picker(Parameters& parameters, Plugins&) {
  return make_picker<RandomPicker>(parameters);
}

}  // namespace octavo::fleet
