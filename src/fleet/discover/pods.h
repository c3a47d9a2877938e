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

// Selects pods that have all these labels with these values.
using LabelSelector = std::map<std::string, std::string>;

// Parses "app=vllm,tier=gpu", or single items of this form. Errors: on `field`.
Result<LabelSelector> parse_label_selector(std::string_view text, std::string_view field);
bool selects(const LabelSelector& selector, const std::map<std::string, std::string>& labels);
// The query for a list: "labelSelector=app%3Dvllm%2Ctier%3Dgpu"; "" without labels.
std::string selector_query(const LabelSelector& selector);

struct Pod {
  std::string name = {};
  std::string ip = {};
  std::string node = {};  // address of the machine; "": unknown
  std::map<std::string, std::string> labels = {};
  int bootstrap_port = 0;  // value of the annotation sglang.ai/bootstrap-port; 0 if missing
};

// The pod, if it accepts requests: it has an address, is ready and is not being deleted.
std::optional<Pod> ready_pod(const boost::json::object& object);

// One endpoint for each port, named "ip:port"; the port's index is the rank. The label llm-d.ai/role is the
// role.
std::vector<Endpoint> endpoints_of(const Pod& pod, const std::vector<int>& ports);

}  // namespace octavo::fleet
