// Address of a Kubernetes API server, and credentials of the client.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {

struct KubeApi {
  http::Url url = {};
  std::string ca_file = {};     // certificates in PEM; "": those of the system
  std::string token_file = {};  // "": no token
  std::string space = "default";  // namespace of this process
};

// Parses a URL, such as that of `kubectl proxy`: "http://127.0.0.1:8001". Errors: field "kube-api".
Result<KubeApi> kube_api_of_url(std::string_view url);

// Returns the access from inside a pod. host, port: the variables KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT. folder: the service account's folder with token, certificates and namespace.
// Errors: field "kube-api".
Result<KubeApi> kube_api_in_cluster(const std::string& host, const std::string& port,
                                    const std::string& folder);

// Checks the name of a namespace, an API group or an object, before it becomes a part of a path. Errors: on
// `field`.
Result<> check_kube_name(std::string_view name, std::string_view field);

class KubeConnection {
 public:
  static Result<KubeConnection> open(const KubeApi& api);

  Result<http::Response> request(std::string_view method, std::string_view target, std::string body = {});
  // Sends a GET and returns the head of the answer. Read the body with client().
  Result<http::Response> stream(std::string_view target);
  http::Client& client() { return client_; }

 private:
  KubeConnection(http::Client client, http::Headers headers)
      : client_(std::move(client)), headers_(std::move(headers)) {}

  http::Client client_;
  http::Headers headers_;
};

}  // namespace octavo::fleet
