// `octavo plan live`: reads the replicas' metrics at regular intervals, decides the number of replicas, and
// scales the fleet with a connector. GET /metrics shows the inputs and decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/autoscale/replica_watch.h"
#include "fleet/plan/autoscaler.h"
#include "http/server.h"

namespace octavo::fleet {

class Connector;

struct PlannerOptions {
  std::vector<std::string> urls = {};  // replicas, or routers whose workers are read
  std::string api_key = {};
  Pool pool = Pool::both;  // prefill or decode: only workers of this role are read
  AutoscalerRules rules = {};
  double share = 0.99;                         // fraction of requests that must meet the SLO
  std::optional<CapacityTable> capacity = {};  // must be set
  const Predictor* predictor = find_predictor("trend");
  int interval_ms = 5000;
  http::ServerOptions http = {};
};

class Planner {
 public:
  static Result<std::unique_ptr<Planner>> start(PlannerOptions options, std::unique_ptr<Connector> connector);
  ~Planner();  // calls stop(0)

  std::string address() const;
  // Stops scaling, then waits at most grace_ms for the processes that the connector must end
  // (Connector::end).
  void stop(int grace_ms);

 private:
  struct State;
  explicit Planner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
