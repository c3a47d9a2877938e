// Filters, then scorers, then a picker: how candidates become a ranking (llm-d's scheduling profile).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleet/decide/plugins.h"

namespace octavo::fleet {

struct StepConfig {
  std::string plugin = {};  // its name
  double weight = 1;        // of a scorer
};

class Profile {
 public:
  // Filters and scorers run in the order given; without a picker, max-score-picker picks, and
  // `plugins` must hold it. Errors: an unknown plugin, a weight below 0, two pickers (field: where + ...).
  static Result<Profile> make(const Plugins& plugins, std::span<const StepConfig> steps,
                              std::string_view where);

  // Ranks `candidates`, which are used up. The ranking is empty if no candidate is left.
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
  std::vector<double> scores_;  // scratch
};

}  // namespace octavo::fleet
