// Searches for the flag values with the highest score, for `octavo tune`. A knob is one flag and its
// possible values.
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
  std::vector<std::string> values;  // "": the flag is not given
  std::size_t usual = 0;            // index of the value without tuning
  // Neighbouring values have similar scores, so a refinement only tries the neighbours of the best value.
  bool ordered = false;
  // indices of the values in the grid; empty: only the usual value
  std::vector<std::size_t> coarse = {};
};

// Tries settings in this order:
// 1. The usual setting.
// 2. The grid of all coarse values.
// 3. The best setting with one knob changed: to neighbouring values if the knob is ordered, otherwise to
// any value. The search ends when no change is better.
// No setting is tried twice.
class KnobSearch {
 public:
  using Setting = std::vector<std::size_t>;  // index of the value of each knob

  explicit KnobSearch(std::vector<Knob> knobs);

  std::optional<Setting> next();  // nullopt: the search has ended
  void add(double score);         // score of the last setting from next()

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
  std::size_t knob_ = 0;  // next knob to refine
  // knobs that were refined since the best setting changed
  std::size_t unchanged_ = 0;
};

}  // namespace octavo::traffic
