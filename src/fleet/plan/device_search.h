// Finds the cheapest fleet that meets an SLO among kinds of replicas: devices, their number in a replica,
// batch sizes, and one pool or separate prefill and decode pools; by simulation.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct ReplicaKind {
  std::string device;
  int devices = 1;  // of a replica
  int max_num_seqs = 0;
  double price = 1;                   // of one device for an hour
  Result<SimulationOptions> options;  // an error: why such a replica cannot serve the model
};

// One kind of replica, in one pool or in two.
struct Offer {
  std::string device;
  int devices = 1;
  int max_num_seqs = 0;
  bool pools = false;
  std::string why = {};  // why there is no answer; "": there is one, below
  int replicas = 0;      // that decode, or do both
  int prefill_replicas = 0;
  double price_per_hour = 0;           // of the fleet
  double cost_per_million_tokens = 0;  // of prompts and outputs together
  Trial trial = {};
};

struct DeviceSearch {
  std::vector<Offer> offers;  // in the order of the search
  std::size_t best = 0;       // index of the cheapest
};

struct SearchRules {
  int replicas_max = 64;  // of a fleet, both pools together
  bool pools = false;     // also try separate pools; each kind's options have a prefill pool then
};

// progress: what is tried, finished requests, all requests.
using SearchProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

// Fleets that cannot be cheaper than the cheapest so far are not simulated. Errors: no kind meets the SLO
// (field "slo"), and those of simulate().
Result<DeviceSearch> search_devices(const std::vector<ReplicaKind>& kinds, const Trace& trace, const Slo& slo,
                                    const SearchRules& rules, const SearchProgress& progress);

std::string device_search_text(const DeviceSearch& search, const Slo& slo);
boost::json::object device_search_json(const DeviceSearch& search, const Slo& slo);

}  // namespace octavo::fleet
