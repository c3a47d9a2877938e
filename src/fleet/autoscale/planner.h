// `octavo plan live`: reads the replicas' metrics, decides the number of replicas, and lets a connector scale
// to it. GET /metrics shows its inputs and decisions.
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
  std::vector<std::string> urls = {};  // URLs of replicas, and of routers, which list their replicas
  std::string api_key = {};
  Pool pool = Pool::both;  // prefill or decode: only these workers of the routers
  AutoscalerRules rules = {};
  double share = 0.99;                         // fraction of requests that must be within the SLO
  std::optional<CapacityTable> capacity = {};  // required
  const Predictor* predictor = find_predictor("trend");
  int interval_ms = 5000;  // from one reading to the next
  http::ServerOptions http = {};
};

// Makes a connector, given the number of existing replicas.
using MakeConnector = std::function<std::unique_ptr<Connector>(int replicas)>;

class Planner {
 public:
  // Errors: those of http::Server::start.
  static Result<std::unique_ptr<Planner>> start(PlannerOptions options, const MakeConnector& make_connector);
  ~Planner();  // stop(0)

  std::string address() const;
  // Lets the connector end its servers, and waits for this up to the given time.
  void stop(int grace_ms);

 private:
  struct State;
  explicit Planner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
