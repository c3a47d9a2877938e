// Searches for the values of several settings ("knobs", such as flags) that give the highest score.
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
  std::vector<std::string> values;  // values of the flag; "": the flag is not given
  std::size_t usual = 0;            // index of the value that is used without tuning
  bool ordered = false;             // neighbouring values give similar scores, so a refinement tries only the
                                    // neighbours of the best value
  std::vector<std::size_t> coarse = {};  // indices of the values in the grid; empty: only the usual value
};

// Tries settings in this order:
// 1. the usual setting.
// 2. the grid of all coarse values.
// 3. from the best setting so far, changes of one knob: neighbours of the value if the knob is ordered,
//    otherwise all values.
// The search ends when no knob improves the best setting. No setting is tried twice.
class KnobSearch {
 public:
  using Setting = std::vector<std::size_t>;  // index of each knob's value

  explicit KnobSearch(std::vector<Knob> knobs);

  std::optional<Setting> next();  // nullopt: the search has ended
  void add(double score);         // adds the score of the setting that next() returned

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
  std::size_t knob_ = 0;       // index of the knob to refine next
  std::size_t unchanged_ = 0;  // number of knobs refined since the best setting changed
};

}  // namespace octavo::traffic
