// weighted-random-picker: sorts randomly, with the scores as weights. Each endpoint draws U^(1 / weight),
// and the largest value is first (Efraimidis and Spirakis 2006). Endpoints with score 0 are last.
#include <cmath>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class WeightedRandomPicker : public Picker {
 public:
  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    shuffle(ranking, cycle.draws);
    keyed_.clear();
    for (const Score& score : ranking)
      keyed_.push_back({score.total > 0 ? std::log(cycle.draws.unit()) / score.total : -HUGE_VAL, score});
    std::ranges::stable_sort(keyed_, std::ranges::greater(), &Keyed::log_key);
    for (std::size_t i = 0; i < ranking.size(); ++i) ranking[i] = keyed_[i].score;
  }

 private:
  struct Keyed {
    double log_key;
    Score score;
  };
  std::vector<Keyed> keyed_;  // used only during pick()
};

}  // namespace

std::unique_ptr<Plugin> make_weighted_random_picker(Parameters& parameters, Plugins&) {
  return make_picker<WeightedRandomPicker>(parameters);
}

}  // namespace octavo::fleet
