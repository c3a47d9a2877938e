// Scales a Kubernetes workload through its scale subresource.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/autoscale/connector.h"
#include "fleet/discover/kube_api.h"

namespace octavo::fleet {

struct KubeScaleOptions {
  KubeApi api = {};
  std::string path = {};  // API path of the workload, from kube_workload_path()
  std::int64_t retry_us = 10'000'000;
  // interval at which the current number of replicas is read, because other programs may change it
  std::int64_t check_us = 30'000'000;
};

// Returns the API path of a workload in the namespace `space`. `workload` is "deployment/NAME",
// "statefulset/NAME", "replicaset/NAME" or "GROUP/VERSION/PLURAL/NAME". Errors report the field
// "kube-workload".
Result<std::string> kube_workload_path(const std::string& workload, const std::string& space);

class KubernetesConnector final : public Connector {
 public:
  explicit KubernetesConnector(KubeScaleOptions options) : options_(std::move(options)) {}

  Result<int> existing(const FleetReading& fleet) override;
  void tick(int replicas, std::int64_t now_us) override;

 private:
  Result<int> read_scale(KubeConnection& connection) const;
  Result<> scale(int replicas) const;

  const KubeScaleOptions options_;
  int wanted_ = -1;
  std::int64_t next_us_ = 0;
};

}  // namespace octavo::fleet
