// Endpoints that are keys of an etcd (v3): one below a prefix for each, there as long as its lease.
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
  // Called on a separate thread: once all keys are known, then with each change. A value that read_worker()
  // refuses is skipped, with a line in the log. While etcd does not answer, the last endpoints stay valid.
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
