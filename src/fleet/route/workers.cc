#include "fleet/route/workers.h"

#include "base/log.h"

namespace octavo::fleet {
namespace {

std::vector<Endpoint> with_roles(std::vector<Endpoint> workers, std::optional<Role> role,
                                 bool disaggregated) {
  for (Endpoint& worker : workers) {
    if (role) worker.role = *role;
    if (!disaggregated) worker.role = Role::both;
  }
  std::erase_if(workers, [&](const Endpoint& worker) {
    const bool unclear = disaggregated && worker.role == Role::both;
    if (unclear) log_warning("ignored the worker {}: its role is neither prefill nor decode", worker.name);
    return unclear;
  });
  return workers;
}

}  // namespace

std::vector<std::unique_ptr<EndpointSource>> follow_workers(Balancer& balancer,
                                                            const RouterOptions& options) {
  std::vector<std::unique_ptr<EndpointSource>> sources;
  for (const DiscoveredWorkers& each : options.workers.discovered)
    sources.push_back(std::make_unique<EndpointSource>(
        each.from, [&balancer, disaggregated = options.pd.enabled, ports = each.event_ports, role = each.role,
                    name = fmt::format("list {}", sources.size())](std::vector<Endpoint> workers) {
          add_event_addresses(workers, ports);
          balancer.set_endpoints(with_roles(std::move(workers), role, disaggregated), name);
        }));
  return sources;
}

}  // namespace octavo::fleet
