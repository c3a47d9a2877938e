// Flags and environment variables that select a Kubernetes cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "fleet/discover/kube_api.h"

namespace octavo {

void add_kube_api_flag(CLI::App& command, const char* group, std::string& url);

// url "": this process runs in a pod of the cluster. Errors are on "kube-api".
Result<fleet::KubeApi> kube_api(const std::string& url);

}  // namespace octavo
