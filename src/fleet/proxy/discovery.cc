#include "fleet/proxy/discovery.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {

Discovery::Discovery(Dispatcher& dispatcher, const std::vector<DiscoveredWorkers>& from, bool disaggregated)
    : dispatcher_(dispatcher), disaggregated_(disaggregated) {
  for (const DiscoveredWorkers& source : from) {
    known_.push_back(std::make_unique<Known>(Known{.role = source.role}));
    const auto endpoints = [this, known = known_.back().get()](std::vector<Endpoint> there) {
      tell(*known, std::move(there));
    };
    if (const auto* pods = std::get_if<KubePoolOptions>(&source.from)) {
      kube_.push_back(std::make_unique<KubePool>(*pods, endpoints));
    } else if (const auto* etcd = std::get_if<EtcdOptions>(&source.from)) {
      etcd_.push_back(std::make_unique<EtcdPool>(*etcd, endpoints));
    } else {
      polled_.push_back(std::make_unique<PolledPool>(std::get<PolledOptions>(source.from), endpoints));
    }
  }
}

void Discovery::tell(Known& known, std::vector<Endpoint> endpoints) {
  std::erase_if(known.names, [&](const std::string& name) {
    if (std::ranges::find(endpoints, name, &Endpoint::name) != endpoints.end()) return false;
    log_info("{} is gone", name);
    const auto view = dispatcher_.fleet().view();
    if (const Member* member = view->find(name)) dispatcher_.remove(member->id);
    return true;
  });
  for (Endpoint& endpoint : endpoints) {
    if (known.names.contains(endpoint.name)) {
      dispatcher_.rank(endpoint);
      continue;
    }
    const std::string name = endpoint.name;
    if (known.role) endpoint.role = *known.role;
    if (!disaggregated_) endpoint.role = Role::both;
    if (disaggregated_ && endpoint.role == Role::both) {
      log_warning("{} is left out: it says neither that it prefills nor that it decodes", name);
      continue;
    }
    if (const auto id = dispatcher_.add(std::move(endpoint))) {
      log_info("{} is there", name);
      known.names.insert(name);
    } else {
      log_warning("{} is left out: {}", name, id.error().message);
    }
  }
}

}  // namespace octavo::fleet
