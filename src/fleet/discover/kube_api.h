// Address of a Kubernetes API server, and the client's identity.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {

struct KubeApi {
  http::Url url = {};
  std::string ca_file = {};     // PEM; "": the system's certificates
  std::string token_file = {};  // "": no token
  std::string space = "default";  // namespace of this process
};

// Parses a URL such as "http://127.0.0.1:8001" of `kubectl proxy`. Errors: field "kube-api".
Result<KubeApi> kube_api_of_url(std::string_view url);

// Access from inside a pod. Host and port are in the variables KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT; token, certificates and namespace are in the service account's folder. Errors:
// field "kube-api".
Result<KubeApi> kube_api_in_cluster(const std::string& host, const std::string& port,
                                    const std::string& folder);

// Checks the name of a namespace, an API group or an object, which becomes a part of a path. Errors: on
// `field`.
Result<> check_kube_name(std::string_view name, std::string_view field);

class KubeConnection {
 public:
  static Result<KubeConnection> open(const KubeApi& api);

  Result<http::Response> request(std::string_view method, std::string_view target, std::string body = {});
  // Sends a GET and returns the head of the answer, whose body is read piece by piece.
  Result<http::Response> stream(std::string_view target);
  http::Client& client() { return client_; }

 private:
  KubeConnection(http::Client client, http::Headers headers)
      : client_(std::move(client)), headers_(std::move(headers)) {}

  http::Client client_;
  http::Headers headers_;
};

}  // namespace octavo::fleet
