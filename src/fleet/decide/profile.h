// A scheduling profile, as in llm-d: filters, then scorers, then a picker rank the candidates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleet/decide/plugins.h"

namespace octavo::fleet {

struct StepConfig {
  std::string plugin = {};  // name of the plugin
  double weight = 1;        // weight of a scorer
};

class Profile {
 public:
  // Filters and scorers run in the given order. Without a picker, max-score-picker is used, which must be in
  // `plugins`. Errors: an unknown plugin, a weight below 0, two pickers (field: where + ...).
  static Result<Profile> make(const Plugins& plugins, std::span<const StepConfig> steps,
                              std::string_view where);

  // Ranks `candidates` and empties the list. The ranking is empty if no candidate remains.
  void run(Cycle& cycle, Candidates& candidates, Decision& decision);

 private:
  template <class Part>
  struct Step {
    StepName name;
    Part* part = nullptr;
    double weight = 1;
  };

  std::vector<Step<Filter>> filters_;
  std::vector<Step<Scorer>> scorers_;
  Step<Picker> picker_;
  std::vector<double> scores_;  // temporary data
};

}  // namespace octavo::fleet
