// Endpoints from pods of a Kubernetes cluster.
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

// A pod matches if it has all these labels.
using LabelSelector = std::map<std::string, std::string>;

// Parses "app=vllm,tier=gpu". Errors: on `field`.
Result<LabelSelector> parse_label_selector(std::string_view text, std::string_view field);
bool selects(const LabelSelector& selector, const std::map<std::string, std::string>& labels);
// Returns the query "labelSelector=app%3Dvllm%2Ctier%3Dgpu"; "" without labels.
std::string selector_query(const LabelSelector& selector);

struct Pod {
  std::string name = {};
  std::string ip = {};
  std::string node = {};  // address of its machine; "": unknown
  std::map<std::string, std::string> labels = {};
  int bootstrap_port = 0;  // annotation sglang.ai/bootstrap-port; 0: none
};

// Returns the pod if it has an address, is ready, and is not being deleted.
std::optional<Pod> ready_pod(const boost::json::object& object);

// Returns one endpoint "ip:port" for each port, whose index is the rank. The label llm-d.ai/role is the role.
std::vector<Endpoint> endpoints_of(const Pod& pod, const std::vector<int>& ports);

}  // namespace octavo::fleet
