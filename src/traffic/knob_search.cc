#include "traffic/knob_search.h"

#include <utility>

namespace octavo::traffic {
namespace {

KnobSearch::Setting usual_of(const std::vector<Knob>& knobs) {
  KnobSearch::Setting usual;
  for (const Knob& knob : knobs) usual.push_back(knob.usual);
  return usual;
}

}  // namespace

KnobSearch::KnobSearch(std::vector<Knob> knobs) : knobs_(std::move(knobs)), best_(usual_of(knobs_)) {
  waiting_.push_back(best_);
  for (Setting& setting : grid()) waiting_.push_back(std::move(setting));
}

std::vector<KnobSearch::Setting> KnobSearch::grid() const {
  std::vector<Setting> all{usual_of(knobs_)};
  for (std::size_t k = 0; k < knobs_.size(); ++k) {
    if (knobs_[k].coarse.empty()) continue;
    std::vector<Setting> wider;
    for (const Setting& setting : all)
      for (const std::size_t value : knobs_[k].coarse) {
        wider.push_back(setting);
        wider.back()[k] = value;
      }
    all = std::move(wider);
  }
  return all;
}

void KnobSearch::add_neighbours(std::size_t k) {
  for (std::size_t value = 0; value < knobs_[k].values.size(); ++value) {
    const bool near = value + 1 == best_[k] || value == best_[k] + 1;
    if (value == best_[k] || (knobs_[k].ordered && !near)) continue;
    waiting_.push_back(best_);
    waiting_.back()[k] = value;
  }
}

bool KnobSearch::refill() {
  refines_ = true;
  if (unchanged_ >= knobs_.size()) return false;
  add_neighbours(knob_);
  knob_ = (knob_ + 1) % knobs_.size();
  ++unchanged_;
  return true;
}

std::optional<KnobSearch::Setting> KnobSearch::next() {
  for (;;) {
    while (!waiting_.empty()) {
      current_ = std::move(waiting_.front());
      waiting_.pop_front();
      if (tried_.insert(current_).second) return current_;
    }
    if (!refill()) return std::nullopt;
  }
}

void KnobSearch::add(double score) {
  if (score <= best_score_) return;
  best_score_ = score;
  best_ = current_;
  unchanged_ = 0;
  if (!refines_) return;
  // The remaining candidates are neighbours of the previous best setting.
  waiting_.clear();
}

}  // namespace octavo::traffic
