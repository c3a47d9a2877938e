// Writes the results of `octavo tune`: a file for `octavo serve --config`, and a report.
#pragma once

#include <string>
#include <vector>

#include "app/given_flags.h"
#include "app/load_round.h"

namespace octavo {

struct TunedTrial {
  std::vector<GivenFlag> flags;  // flags that are searched
  double rate = 0;               // highest rate that meets the SLO, in requests/s; 0: not better than the
                                 // best so far
  std::string reason;            // reason if the rate is 0; otherwise the statistics at the rate
};

struct TuneResult {
  std::string model;
  std::vector<GivenFlag> given;  // flags of the command line, which are not searched
  std::vector<std::string> slo;
  double share = 0;  // fraction of the requests that must meet the SLO
  std::vector<TunedTrial> trials;
  std::vector<TunedTrial> grid;  // with --exhaustive
  TunedTrial best;
  std::vector<LoadRound> confirmed;  // runs of the best setting at its rate
  std::vector<LoadRound> curve;      // runs of the best setting, by rate
};

// The flags as a table shows them: "max-num-seqs 64, block-size 32".
std::string flags_text(const std::vector<GivenFlag>& flags);
std::string tuned_config(const TuneResult& result);
// A report in Markdown.
std::string tune_report(const TuneResult& result);

}  // namespace octavo
