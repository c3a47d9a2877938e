// Writes the results of `octavo tune`: a file for `octavo serve --config`, and a report.
#pragma once

#include <string>
#include <vector>

#include "app/given_flags.h"
#include "app/load_round.h"

namespace octavo {

struct TunedTrial {
  std::vector<GivenFlag> flags;
  double rate = 0;  // highest rate that meets the SLO, in requests/s; 0: not better than the best one so far
  std::string reason;  // why the rate is 0; otherwise figures at the rate
};

struct TuneResult {
  std::string model;
  std::vector<GivenFlag> given;  // flags of the command line, which stay
  std::vector<std::string> slo;
  double share = 0;  // fraction of requests that must meet the SLO
  std::vector<TunedTrial> trials;
  std::vector<TunedTrial> grid;  // with --exhaustive
  TunedTrial best;
  std::vector<LoadRound> confirmed;  // runs of the best setting at the best rate
  std::vector<LoadRound> curve;      // runs of the best setting at other rates
};

// Returns the flags for a table: "max-num-seqs 64, block-size 32".
std::string flags_text(const std::vector<GivenFlag>& flags);
std::string tuned_config(const TuneResult& result);
// Returns a report in Markdown.
std::string tune_report(const TuneResult& result);

}  // namespace octavo
