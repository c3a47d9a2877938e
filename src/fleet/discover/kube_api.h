// Connects to a Kubernetes API server.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {

struct KubeApi {
  http::Url url = {};
  std::string ca_file = {};     // certificates in PEM format; "": the system's certificates
  std::string token_file = {};  // "": no token
  std::string space = "default";
};

// Parses a URL such as that of `kubectl proxy`, "http://127.0.0.1:8001". Errors report the field
// "kube-api".
Result<KubeApi> kube_api_of_url(std::string_view url);

// Returns the URL and the credentials for a process in a pod. `host` and `port` are the environment variables
// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. `folder` is the service account's folder, with
// token, certificates and namespace. Errors report the field "kube-api".
Result<KubeApi> kube_api_in_cluster(const std::string& host, const std::string& port,
                                    const std::string& folder);

// Checks that the name of a namespace, an API group or an object may be used in a URL path. Errors report
// `field`.
Result<> check_kube_name(std::string_view name, std::string_view field);

class KubeConnection {
 public:
  static Result<KubeConnection> open(const KubeApi& api);

  Result<http::Response> request(std::string_view method, std::string_view target, std::string body = {});
  // Sends a GET and returns the headers of the response. The caller reads the body with client().
  Result<http::Response> stream(std::string_view target);
  http::Client& client() { return client_; }

 private:
  KubeConnection(http::Client client, http::Headers headers)
      : client_(std::move(client)), headers_(std::move(headers)) {}

  http::Client client_;
  http::Headers headers_;
};

}  // namespace octavo::fleet
