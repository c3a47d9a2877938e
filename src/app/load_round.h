// Measures a server at one rate of requests, for `octavo bench sweep` and `octavo tune`.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "app/bench_load.h"

namespace octavo {

struct LoadRound {
  double rate;        // requests/s
  double good_share;  // fraction of all requests
  boost::json::object figures;

  double figure(const char* name) const { return figures.at(name).to_number<double>(); }
};

struct RoundPlan {
  double rate;
  int seconds;  // duration in seconds; a run has at least 20 requests
  std::size_t number;
};

// Measures a rate. Each round number has different prompts, so that no round uses an earlier one's prefix
// cache. Round 0 first sends one request; if it fails, its error is returned.
Result<LoadRound> measure_round(const LoadFlags& flags, const RoundPlan& plan, const traffic::Goodput& slo,
                                const LoadTarget& target);

std::string round_heading();
std::string round_row(const LoadRound& round);
std::string plot_rounds(const std::string& title, std::vector<LoadRound> rounds);

}  // namespace octavo
