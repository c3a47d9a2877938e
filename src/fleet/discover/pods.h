// Pods of a Kubernetes cluster as endpoints.
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

// All of these labels with these values.
using LabelSelector = std::map<std::string, std::string>;

// Parses "app=vllm,tier=gpu", or such items one by one. Errors: on `field`.
Result<LabelSelector> parse_label_selector(std::string_view text, std::string_view field);
bool selects(const LabelSelector& selector, const std::map<std::string, std::string>& labels);
// The query of a list: "labelSelector=app%3Dvllm%2Ctier%3Dgpu"; "" of no labels.
std::string selector_query(const LabelSelector& selector);

struct Pod {
  std::string name = {};
  std::string ip = {};
  std::string node = {};  // the address of its machine; "": not told
  std::map<std::string, std::string> labels = {};
  int bootstrap_port = 0;  // the annotation sglang.ai/bootstrap-port; 0 if missing
};

// A pod that takes requests: it has an address, is ready and is not on its way out.
std::optional<Pod> ready_pod(const boost::json::object& object);

// One endpoint for each port, named "ip:port", with the port's index as its rank; the label llm-d.ai/role says
// what it does.
std::vector<Endpoint> endpoints_of(const Pod& pod, const std::vector<int>& ports);

}  // namespace octavo::fleet
