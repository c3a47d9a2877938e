// The endpoints of a Kubernetes cluster's pods, and what the cluster says of their requests, as it changes.
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

// Either a pool, which says itself which pods and ports are its own, or those.
struct KubePoolOptions {
  KubeApi api = {};
  std::string space = "default";                      // the namespace of all of it
  std::string pool = {};                              // an InferencePool's name; "": selector and ports count
  std::string group = "inference.networking.k8s.io";  // of the InferencePool
  LabelSelector selector = {};
  std::vector<int> ports = {};
};

inline constexpr std::size_t kPoolPortsMax = 8;

class KubePool {
 public:
  // Called on separate threads, one call at a time: once all is known, then after each change. Only pools
  // have rules.
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
  void tell_endpoints();
  void tell_rules();

  const KubePoolOptions options_;
  const Endpoints endpoints_;
  const Rules rules_;
  std::mutex mutex_;  // of all up to the sinks
  struct Selected {
    LabelSelector selector;
    std::vector<int> ports;
  };
  std::optional<Selected> selected_;  // nothing: there is no such pool
  bool pool_known_ = false;
  bool pods_known_ = false;
  std::map<std::string, Pod> pods_;  // that are ready
  std::map<std::string, int, std::less<>> objectives_;
  std::map<std::string, ModelRewrite> rewrites_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<KubeWatch>> watches_;
};

// Pods selected by an InferencePool (v1). Errors name the unusable field.
Result<KubePoolOptions> read_inference_pool(const boost::json::object& object);

}  // namespace octavo::fleet
