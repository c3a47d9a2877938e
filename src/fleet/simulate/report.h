// Computes the figures of a simulation. Names are those of vLLM's `bench serve`.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// Returns the figures of traffic/figures.h and figures of the fleet: cached_input_tokens,
// prefix_cache_hit_rate, steps, preemptions, *_utilization and replica_hours. A request counts as sent when
// it reaches the router.
boost::json::object report(const SimulationOptions& options, const SimulationResult& result,
                           const traffic::Goodput& goodput, std::span<const double> percentiles);

std::string report_table(std::span<const boost::json::object> reports);

}  // namespace octavo::fleet
