#include "fleet/simulate/simulation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/quoted_text.h"
#include "fleet/simulate/world.h"

namespace octavo::fleet {
namespace {

// Returns the pipeline in the options or, if it is not set, the policy with this name.
Result<PoolOptions> make_policy(const SimulationOptions& options, Role part, const std::string& name) {
  if (options.pipeline) return PoolOptions{part, name, *options.pipeline};
  const Policy* policy = find_policy(name);
  if (!policy) return invalid("policy", "the policy {} does not exist", quoted_text(name));
  PolicyOptions policy_options = options.policy_options;
  policy_options.max_tree_size = std::max<std::int64_t>(1, policy_options.max_tree_size / kTextScale);
  return PoolOptions{part, name, policy->pipeline(policy_options)};
}

}  // namespace

Result<SimulationResult> simulate(const SimulationOptions& options, const Trace& trace,
                                  const std::function<void(std::size_t, std::size_t)>& progress) {
  CHECK(!trace.requests.empty() && options.metrics_interval_us > 0);
  std::vector<SimulatedPool> pools;
  std::vector<PoolOptions> policies;
  const PrefillPool& prefill = options.prefill;
  if (prefill.replicas > 0) {
    CHECK(options.sizes.empty());
    if (!options.scheduler.enable_prefix_caching)
      return invalid("enable-prefix-caching", "must be on with separate prefill replicas");
    TRY(PoolOptions policy, make_policy(options, Role::prefill, prefill.policy));
    policies.push_back(std::move(policy));
    pools.push_back({Role::prefill, prefill.scheduler, prefill.timing});
  }
  const Role part = prefill.replicas > 0 ? Role::decode : Role::both;
  TRY(PoolOptions policy, make_policy(options, part, options.policy));
  policies.push_back(std::move(policy));
  pools.push_back({part, options.scheduler, options.timing});
  return World(options, trace, std::move(pools), progress).run(std::move(policies));
}

}  // namespace octavo::fleet
