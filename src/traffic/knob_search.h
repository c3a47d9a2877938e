// Searches for the values of several settings ("knobs", such as flags) with the highest score.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace octavo::traffic {

struct Knob {
  std::string flag;
  std::vector<std::string> values;  // values of a flag; "": without the flag
  std::size_t usual = 0;            // index of the value without tuning
  // neighbouring values have similar scores, so a refinement tries only neighbours of the best value
  bool ordered = false;
  std::vector<std::size_t> coarse = {};  // indices of values in the grid; empty: only the usual value
};

// Tries settings in this order:
// 1. The usual setting.
// 2. The grid of all coarse values.
// 3. Changes of one knob of the best setting: neighbours of its value if the knob is ordered, otherwise all
// values. The search ends when no change is better.
// No setting is tried twice.
class KnobSearch {
 public:
  using Setting = std::vector<std::size_t>;  // [knob] index of its value

  explicit KnobSearch(std::vector<Knob> knobs);

  std::optional<Setting> next();  // nullopt: the search has ended
  void add(double score);         // score of the last setting of next()

  const std::vector<Knob>& knobs() const { return knobs_; }
  const Setting& best() const { return best_; }
  double best_score() const { return best_score_; }
  std::vector<Setting> grid() const;

 private:
  bool refill();
  void add_neighbours(std::size_t knob);

  const std::vector<Knob> knobs_;
  std::deque<Setting> waiting_;
  std::set<Setting> tried_;
  Setting current_, best_;
  double best_score_ = 0;
  bool refines_ = false;
  std::size_t knob_ = 0;       // index of the next knob to refine
  std::size_t unchanged_ = 0;  // knobs refined since the best setting changed
};

}  // namespace octavo::traffic
