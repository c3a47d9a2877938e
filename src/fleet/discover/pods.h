// Reads pods of a Kubernetes cluster, and makes endpoints from them.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/discover/kube_mirror.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// A pod matches if it has all labels of the selector.
using LabelSelector = std::map<std::string, std::string>;

// Parses "app=vllm,tier=gpu". Errors report `field`.
Result<LabelSelector> parse_label_selector(std::string_view text, std::string_view field);
bool selects(const LabelSelector& selector, const std::map<std::string, std::string>& labels);
// Returns a query such as "labelSelector=app%3Dvllm%2Ctier%3Dgpu". Returns "" if the selector has no
// labels.
std::string selector_query(const LabelSelector& selector);

struct Pod {
  std::string name = {};
  std::string ip = {};
  std::string node = {};  // address of the machine; "": unknown
  std::map<std::string, std::string> labels = {};
  int bootstrap_port = 0;  // annotation sglang.ai/bootstrap-port; 0: no annotation
};

// Returns nullopt if the pod has no address, is not ready, or is being deleted.
std::optional<Pod> ready_pod(const boost::json::object& object);

// Returns one endpoint "ip:port" for each port. The endpoint's rank is the index of the port, and its role is
// the value of the label llm-d.ai/role.
std::vector<Endpoint> endpoints_of(const Pod& pod, const std::vector<int>& ports);

}  // namespace octavo::fleet
