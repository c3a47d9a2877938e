// Endpoints from the pods of a Kubernetes cluster, and the rules for requests that the cluster stores.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fleet/discover/kube_watch.h"
#include "fleet/discover/pods.h"
#include "fleet/discover/request_rules.h"

namespace octavo::fleet {

// The pods come either from an InferencePool (`pool`) or from `selector` and `ports`.
struct KubePoolOptions {
  KubeApi api = {};
  std::string space = "default";  // namespace of the pods and of the InferencePool
  std::string pool = {};          // name of the InferencePool; "": use selector and ports
  std::string group = "inference.networking.k8s.io";
  LabelSelector selector = {};
  std::vector<int> ports = {};
};

inline constexpr std::size_t kPoolPortsMax = 8;

class KubePool {
 public:
  // Calls both functions on separate threads, one call at a time, when all lists are complete, and after
  // each change. Only InferencePools have rules.
  using Endpoints = std::function<void(std::vector<Endpoint>)>;
  using Rules = std::function<void(RequestRules)>;

  KubePool(KubePoolOptions options, Endpoints endpoints, Rules rules = {});
  ~KubePool();

 private:
  class Sink;

  void watch(std::string path, std::string selector, std::unique_ptr<Sink> sink);
  void watch_pods();
  void watch_pool();
  void watch_rules();
  void notify_endpoints();
  void notify_rules();

  const KubePoolOptions options_;
  const Endpoints endpoints_;
  const Rules rules_;
  std::mutex mutex_;  // guards the members up to rewrites_
  struct Selected {
    LabelSelector selector;
    std::vector<int> ports;
  };
  std::optional<Selected> selected_;  // nullopt: the InferencePool does not exist
  bool pool_known_ = false;
  bool pods_known_ = false;
  std::map<std::string, Pod> pods_;
  std::map<std::string, int, std::less<>> objectives_;
  std::map<std::string, ModelRewrite> rewrites_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<KubeWatch>> watches_;
};

// Reads the selector and the ports of an InferencePool (v1). Returns an error on the invalid field.
Result<KubePoolOptions> read_inference_pool(const boost::json::object& object);

}  // namespace octavo::fleet
