// The flags and the environment that say which Kubernetes cluster is asked.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "fleet/discover/kube_api.h"

namespace octavo {

void add_kube_api_flag(CLI::App& command, const char* group, std::string& url);

// "": the cluster that this process is a pod of. Errors: field "kube-api".
Result<fleet::KubeApi> kube_api(const std::string& url);

}  // namespace octavo
