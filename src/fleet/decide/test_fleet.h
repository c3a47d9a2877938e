// For tests of decisions: a fleet of named endpoints, with a clock that the test sets.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "fleet/decide/pipeline.h"

namespace octavo::fleet {

class TestFleet {
 public:
  explicit TestFleet(std::size_t endpoints) {
    for (std::size_t i = 0; i < endpoints; ++i) {
      const std::string name = "replica-" + std::to_string(i) + ":8000";
      CHECK(fleet.add({.name = name, .url = "http://" + name}));
    }
    fleet.update([](Member& m) { return (m.state.availability = Availability::available, true); });
  }

  // Ranks the endpoints, best first. Does not send a request.
  std::vector<EndpointId> rank(Pipeline& policy, const RouteRequest& request,
                               std::vector<EndpointId> excluded = {}) {
    const auto view = fleet.view();
    Cycle cycle{*view, request, inflight, pace, now_us, Draws(++seed)};
    policy.choose(cycle, Role::both, excluded, decision);
    std::vector<EndpointId> ids;
    for (const Score& score : decision.ranking) ids.push_back(score.endpoint);
    return ids;
  }

  // Chooses an endpoint, reports the request as sent, and books it.
  Booking send(Pipeline& policy, const RouteRequest& request, std::vector<EndpointId> excluded = {}) {
    const auto view = fleet.view();
    Cycle cycle{*view, request, inflight, pace, now_us, Draws(++seed)};
    policy.choose(cycle, Role::both, excluded, decision);
    policy.sent(cycle, decision.chosen());
    const auto tokens = static_cast<std::int64_t>(request.tokens.size());
    return inflight.book(decision.chosen(), tokens, tokens);
  }

  Fleet fleet;
  Inflight inflight;
  Pace pace;
  Decision decision;
  std::int64_t now_us = 0;
  std::uint64_t seed = 0;
};

inline RouteRequest prompt(std::string text) {
  RouteRequest request{.model = "m", .text = std::move(text)};
  request.tokens = estimated_tokens(request.text);
  return request;
}

inline Pipeline pipeline(std::vector<PluginConfig> plugins, std::vector<StepConfig> steps) {
  auto made = Pipeline::make({std::move(plugins), std::move(steps)});
  CHECK(made, "{}", made.error().message);
  return *std::move(made);
}

// Returns the score of each endpoint. The policy must have exactly one scorer.
inline std::vector<double> scores(TestFleet& fleet, Pipeline& policy,
                                  const RouteRequest& request = prompt("p")) {
  fleet.decision.explain = true;
  fleet.rank(policy, request);
  std::vector<double> by_endpoint(fleet.fleet.view()->id_limit);
  for (const Score& s : fleet.decision.steps.back().scores) by_endpoint[s.endpoint] = s.total;
  return by_endpoint;
}

}  // namespace octavo::fleet
