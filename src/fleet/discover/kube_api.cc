#include "fleet/discover/kube_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/quoted_text.h"
#include "http/tls.h"

namespace octavo::fleet {
namespace {

constexpr int kTimeoutMs = 10'000;
// maximum size of one response; a list may have several pages
constexpr std::uint64_t kPageBytesMax = 256 << 20;

Result<std::string> text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return field_failure("kube-api", ErrorCode::not_found, "cannot read the file {}", path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  text.erase(text.find_last_not_of(" \r\n") + 1);
  return text;
}

}  // namespace

Result<KubeApi> kube_api_of_url(std::string_view text) {
  const auto url = http::parse_url(text);
  if (!url || url->target != "/")
    return invalid("kube-api", "must be http://host:port or https://host:port, got {}", quoted_text(text));
  return KubeApi{.url = *url};
}

Result<KubeApi> kube_api_in_cluster(const std::string& host, const std::string& port,
                                    const std::string& folder) {
  if (host.empty() || port.empty())
    return invalid(
        "kube-api",
        "must be given, because this process does not run in a pod; example: http://127.0.0.1:8001");
  const bool v6 = host.find(':') != std::string::npos;
  TRY(KubeApi api, kube_api_of_url(v6 ? fmt::format("https://[{}]:{}", host, port)
                                      : fmt::format("https://{}:{}", host, port)));
  api.ca_file = folder + "/ca.crt";
  api.token_file = folder + "/token";
  TRY_VOID(text_of(api.token_file));
  TRY(api.space, text_of(folder + "/namespace"));
  return api;
}

Result<> check_kube_name(std::string_view name, std::string_view field) {
  const bool good = !name.empty() && name.size() <= 253 && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.';
  });
  if (!good)
    return invalid(field, "must be a name of lower case letters, digits, - and ., got {}", quoted_text(name));
  return {};
}

Result<KubeConnection> KubeConnection::open(const KubeApi& api) {
  http::Headers headers{{"Accept", "application/json"}};
  if (!api.token_file.empty()) {
    TRY(const std::string token, text_of(api.token_file));
    headers.add("Authorization", "Bearer " + token);
  }
  std::shared_ptr<SSL_CTX> tls;
  if (api.url.tls && !api.ca_file.empty()) {
    TRY(tls, http::client_tls_context({.ca_files = {api.ca_file}}));
  }
  TRY(http::Client client, http::Client::connect({.host = api.url.host,
                                                  .port = api.url.port,
                                                  .tls = api.url.tls,
                                                  .tls_context = std::move(tls),
                                                  .timeout_ms = kTimeoutMs,
                                                  .body_bytes_max = kPageBytesMax}));
  return KubeConnection(std::move(client), std::move(headers));
}

Result<http::Response> KubeConnection::request(std::string_view method, std::string_view target,
                                               std::string body) {
  http::Headers headers = headers_;
  if (!body.empty()) headers.add("Content-Type", "application/json");
  return client_.request(method, target, std::move(body), std::move(headers));
}

Result<http::Response> KubeConnection::stream(std::string_view target) {
  return client_.open("GET", target, {}, headers_);
}

}  // namespace octavo::fleet
