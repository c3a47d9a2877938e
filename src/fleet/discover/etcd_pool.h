// Endpoints from etcd (v3), where each endpoint has a key with a common prefix and a lease.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleet/discover/etcd_mirror.h"
#include "fleet/discover/follower.h"
#include "fleet/view/endpoint.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {

struct EtcdOptions {
  http::Url url = {};
  std::string prefix = "/octavo/workers/";
};

class EtcdPool {
 public:
  // Calls `endpoints` on a separate thread when all keys are known, and after each change. Logs and skips
  // values that read_worker() refuses. While etcd does not respond, the last endpoints stay.
  using Endpoints = std::function<void(std::vector<Endpoint>)>;
  EtcdPool(EtcdOptions options, Endpoints endpoints);

 private:
  Result<> once();
  Result<> watch(http::Client& client);
  void notify();

  const EtcdOptions options_;
  const Endpoints endpoints_;
  EtcdMirror mirror_;
  Follower follower_;
};

}  // namespace octavo::fleet
