#include "fleet/discover/polled_pool.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <memory>

#include "fleet/discover/endpoints.h"
#include "http/async_client.h"

namespace octavo::fleet {
namespace {

constexpr int kFileMs = 1'000;

Result<std::vector<Endpoint>> addresses_of(const http::Address& name) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(name.host.c_str(), nullptr, &wanted, &found); error != 0)
    return failure(ErrorCode::io, "{}", gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    char text[INET6_ADDRSTRLEN];
    const bool v6 = at->ai_family == AF_INET6;
    if (!v6 && at->ai_family != AF_INET) continue;
    const void* address =
        v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(at->ai_addr)->sin6_addr)
           : &reinterpret_cast<const sockaddr_in*>(at->ai_addr)->sin_addr;
    if (inet_ntop(at->ai_family, address, text, sizeof text) == nullptr) continue;
    auto endpoint = endpoint_of_address(v6 ? fmt::format("[{}]:{}", text, name.port)
                                           : fmt::format("{}:{}", text, name.port));
    if (endpoint && std::ranges::find(endpoints, endpoint->name, &Endpoint::name) == endpoints.end())
      endpoints.push_back(*std::move(endpoint));
  }
  return endpoints;
}

}  // namespace

Result<PolledOptions> poll_file(const std::string& path) {
  TRY_VOID(read_endpoints_file(path));
  return PolledOptions{.source = "file of endpoints", .interval_ms = kFileMs, .read = [path] {
                         return read_endpoints_file(path);
                       }};
}

Result<PolledOptions> poll_dns(const std::string& host_and_port, int interval_ms) {
  TRY(const http::Address name, http::parse_base_url("http://" + host_and_port));
  return PolledOptions{.source = "DNS, " + name.text(), .interval_ms = interval_ms, .read = [name] {
                         return addresses_of(name);
                       }};
}

PolledPool::PolledPool(const PolledOptions& options, const Endpoints& endpoints)
    : follower_(
          {.source = options.source, .interval_ms = options.interval_ms, .pause_ms_max = options.interval_ms},
          [read = options.read, endpoints]() -> Result<> {
            TRY(std::vector<Endpoint> found, read());
            endpoints(std::move(found));
            return {};
          }) {}

}  // namespace octavo::fleet
