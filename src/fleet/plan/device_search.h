// Finds the cheapest fleet that meets an SLO, by simulation. Tries each device with several numbers of
// devices per replica and several batch sizes, with one pool or with separate prefill and decode pools.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct ReplicaKind {
  std::string device;
  int devices = 1;
  int max_num_seqs = 0;
  bool measured = false;  // true: the step times were measured; false: they are roofline estimates
  double price = 1;                   // per device and hour
  Result<SimulationOptions> options;  // error: why replicas of this kind cannot serve the model
};

struct Offer {
  std::string device;
  int devices = 1;
  int max_num_seqs = 0;
  bool measured = false;  // as in ReplicaKind
  bool pools = false;
  std::string why = {};  // why no fleet was found; "": a fleet was found
  int replicas = 0;      // replicas of the only pool, or of the decode pool
  int prefill_replicas = 0;
  double price_per_hour = 0;
  double cost_per_million_tokens = 0;  // prompt and output tokens together
  Trial trial = {};
};

struct DeviceSearch {
  std::vector<Offer> offers;  // all offers, in the order of the search
  std::size_t best = 0;       // index in `offers` of the cheapest fleet
};

struct SearchRules {
  int replicas_max = 64;  // maximum number of replicas of a fleet, in both pools together
  // also try separate pools; all ReplicaKinds then need a prefill pool in their options
  bool pools = false;
};

// Arguments: a description of the current offer, the number of finished requests, and the number of all
// requests.
using SearchProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

// Skips fleets that cannot be cheaper than the cheapest fleet so far. Returns an error on "slo" if no kind
// of replica meets the SLO. Also returns the errors of simulate().
Result<DeviceSearch> search_devices(const std::vector<ReplicaKind>& kinds, const Trace& trace, const Slo& slo,
                                    const SearchRules& rules, const SearchProgress& progress);

std::string device_search_text(const DeviceSearch& search, const Slo& slo);
boost::json::object device_search_json(const DeviceSearch& search, const Slo& slo);

}  // namespace octavo::fleet
