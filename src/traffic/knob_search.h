// Searches settings of several knobs for the one with the highest score.
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
  bool ordered = false;             // neighbours are similar: a refinement tries them, and not all values
  std::vector<std::size_t> coarse = {};  // indexes for the grid; empty: the grid has the usual value
};

// In this order: the usual setting; the grid of all coarse values; then, from the best so far, each knob
// alone (neighbours of ordered knobs, all values of the others), until no knob improves it. No setting comes
// twice.
class KnobSearch {
 public:
  using Setting = std::vector<std::size_t>;  // index of each knob's value

  explicit KnobSearch(std::vector<Knob> knobs);

  std::optional<Setting> next();  // nullopt: the search has ended
  void add(double score);         // of the setting that next() returned

  const std::vector<Knob>& knobs() const { return knobs_; }
  const Setting& best() const { return best_; }
  double best_score() const { return best_score_; }
  // All settings of the grid.
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
  std::size_t knob_ = 0;       // the next one to refine
  std::size_t unchanged_ = 0;  // knobs refined since the best setting changed
};

}  // namespace octavo::traffic
