// What `octavo tune` writes: a file for `octavo serve --config`, and a report.
#pragma once

#include <string>
#include <vector>

#include "app/given_flags.h"
#include "app/load_round.h"

namespace octavo {

struct TunedTrial {
  std::vector<GivenFlag> flags;  // those that are searched
  double rate = 0;               // highest that meets the SLO, requests/s; 0: not better than the best so far
  std::string reason;            // of rate 0, or the figures at the rate
};

struct TuneResult {
  std::string model;
  std::vector<GivenFlag> given;  // flags of the command line, which stay as they are
  std::vector<std::string> slo;
  double share = 0;  // of the requests that must meet it
  std::vector<TunedTrial> trials;
  std::vector<TunedTrial> grid;  // of --exhaustive
  TunedTrial best;
  std::vector<LoadRound> confirmed;  // runs of the best setting at its rate
  std::vector<LoadRound> curve;      // of the best setting, by rate
};

// As in a table: "max-num-seqs 64, block-size 32".
std::string flags_text(const std::vector<GivenFlag>& flags);
std::string tuned_config(const TuneResult& result);
// Markdown.
std::string tune_report(const TuneResult& result);

}  // namespace octavo
