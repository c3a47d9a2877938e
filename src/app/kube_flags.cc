#include "app/kube_flags.h"

#include "app/environment.h"
#include "local/flag_table.h"

namespace octavo {

namespace {

constexpr FlagRow<std::string> kApiFlag[] = {
    {"--kube-api", flag::to<>,
     "URL of the Kubernetes API server, such as http://127.0.0.1:8001 of kubectl proxy (default: the cluster "
     "in which this pod runs, with the pod's service account)"},
};

}  // namespace

void add_kube_api_flag(CLI::App& command, const char* group, std::string& url) {
  add_flags(command, url, group, kApiFlag);
}

Result<fleet::KubeApi> kube_api(const std::string& url) {
  if (!url.empty()) return fleet::kube_api_of_url(url);
  return fleet::kube_api_in_cluster(environment("KUBERNETES_SERVICE_HOST"),
                                    environment("KUBERNETES_SERVICE_PORT"),
                                    "/var/run/secrets/kubernetes.io/serviceaccount");
}

}  // namespace octavo
