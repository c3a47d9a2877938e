// Endpoints from etcd (v3): one key below a prefix for each endpoint, which exists as long as its lease.
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
  // Called on a separate thread: when all keys are known, then after each change. Values that read_worker()
  // refuses are skipped and logged. While etcd does not answer, the last endpoints stay valid.
  using Endpoints = std::function<void(std::vector<Endpoint>)>;
  EtcdPool(EtcdOptions options, Endpoints endpoints);

 private:
  Result<> once();
  Result<> watch(http::Client& client);
  void tell();

  const EtcdOptions options_;
  const Endpoints endpoints_;
  EtcdMirror mirror_;
  Follower follower_;
};

}  // namespace octavo::fleet
