// `octavo plan live`: reads the replicas' metrics, decides the number of replicas, and scales with a
// connector. GET /metrics shows the inputs and decisions.
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
  std::vector<std::string> urls = {};  // URLs of replicas, or of routers, whose replicas are read
  std::string api_key = {};
  Pool pool = Pool::both;  // prefill or decode: read only workers of this role
  AutoscalerRules rules = {};
  double share = 0.99;                         // fraction of requests that must meet the SLO
  std::optional<CapacityTable> capacity = {};  // required
  const Predictor* predictor = find_predictor("trend");
  int interval_ms = 5000;  // milliseconds between two readings
  http::ServerOptions http = {};
};

// Makes a connector. replicas: number of existing replicas.
using MakeConnector = std::function<std::unique_ptr<Connector>(int replicas)>;

class Planner {
 public:
  // Errors: those of http::Server::start.
  static Result<std::unique_ptr<Planner>> start(PlannerOptions options, const MakeConnector& make_connector);
  ~Planner();  // calls stop(0)

  std::string address() const;
  // Waits at most grace_ms for the end of the connector's servers.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Planner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
