// The figures of a simulation, under the names that vLLM's `bench serve` has for them.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// Those of traffic/figures.h, where a request is sent when it comes to the router, and what a fleet has
// beside them: cached_input_tokens, prefix_cache_hit_rate, steps, preemptions, *_utilization, replica_hours.
boost::json::object report(const SimulationOptions& options, const SimulationResult& result,
                           const traffic::Goodput& goodput, std::span<const double> percentiles);

// Several reports side by side, for people.
std::string report_table(std::span<const boost::json::object> reports);

}  // namespace octavo::fleet
