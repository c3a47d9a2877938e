// A scheduling profile, as in llm-d: filters, scorers and a picker, which together rank the candidates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleet/decide/plugins.h"

namespace octavo::fleet {

struct StepConfig {
  std::string plugin = {};
  double weight = 1;
};

class Profile {
 public:
  // Filters and scorers run in the given order. If no step is a picker, max-score-picker is used, which
  // must be in `plugins`. Returns an error on a field that begins with `where` if a plugin is unknown, a
  // weight is below 0, or there are two pickers.
  static Result<Profile> make(const Plugins& plugins, std::span<const StepConfig> steps,
                              std::string_view where);

  // Ranks `candidates`, and empties the list. The ranking is empty if the filters remove all candidates.
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
  std::vector<double> scores_;  // used only during run()
};

}  // namespace octavo::fleet
