// Writes the results of `octavo tune`: a file for `octavo serve --config`, and a report.
#pragma once

#include <string>
#include <vector>

#include "app/given_flags.h"
#include "app/load_round.h"

namespace octavo {

struct TunedTrial {
  std::vector<GivenFlag> flags;
  // highest request rate that meets the SLO; 0: not better than the best setting so far
  double rate = 0;
  std::string reason;  // why the rate is 0, or figures at this rate
};

struct TuneResult {
  std::string model;
  std::vector<GivenFlag> given;  // flags of the command line, which are not tuned
  std::vector<std::string> slo;
  double share = 0;  // fraction of requests that must meet the SLO
  std::vector<TunedTrial> trials;
  std::vector<TunedTrial> grid;  // all settings of the grid, only with --exhaustive
  // set with --exhaustive: the tuned setting and the best settings of the grid, measured in turns; best first
  std::vector<TunedTrial> finals;
  TunedTrial best;
  // runs of the best setting at the best rate
  std::vector<LoadRound> confirmed;
  // runs of the best setting at other rates
  std::vector<LoadRound> curve;
};

// Returns text such as "max-num-seqs 64, block-size 32".
std::string flags_text(const std::vector<GivenFlag>& flags);
std::string tuned_config(const TuneResult& result);
std::string tune_report(const TuneResult& result);

}  // namespace octavo
