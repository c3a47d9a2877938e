#include "fleet/discover/endpoint_source.h"

#include <utility>

namespace octavo::fleet {

EndpointSource::EndpointSource(const EndpointSourceOptions& options,
                               std::function<void(std::vector<Endpoint>)> listed,
                               std::function<void(RequestRules)> rules) {
  if (const auto* pods = std::get_if<KubePoolOptions>(&options))
    pool_ = std::make_unique<KubePool>(*pods, std::move(listed), std::move(rules));
  else if (const auto* etcd = std::get_if<EtcdOptions>(&options))
    pool_ = std::make_unique<EtcdPool>(*etcd, std::move(listed));
  else
    pool_ = std::make_unique<PolledPool>(std::get<PolledOptions>(options), std::move(listed));
}

}  // namespace octavo::fleet
