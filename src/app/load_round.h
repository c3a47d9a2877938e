// One rate of requests to a server, measured: common to `octavo bench sweep` and `octavo tune`.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "app/bench_load.h"

namespace octavo {

struct LoadRound {
  double rate;        // requests/s
  double good_share;  // share of all requests
  boost::json::object figures;

  double figure(const char* name) const { return figures.at(name).to_number<double>(); }
};

struct RoundPlan {
  double rate;
  int seconds;  // of load, with at least 20 requests
  std::size_t number;
};

// Each number has new prompts, so that no round profits from an earlier one's prefix cache. Round 0 sends one
// request first, whose error is the result.
Result<LoadRound> measure_round(const LoadFlags& flags, const RoundPlan& plan, const traffic::Goodput& slo,
                                const LoadTarget& target);

std::string round_heading();
std::string round_row(const LoadRound& round);
// A picture (SVG) of the figures over the rate.
std::string plot_rounds(const std::string& title, std::vector<LoadRound> rounds);
// Error: io, with the flag that names the file.
Result<> write_file(const char* flag, const std::string& path, const std::string& text);

}  // namespace octavo
