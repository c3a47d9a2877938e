#include "fleet/observe/server_pages.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <future>
#include <span>

#include "http/client.h"
#include "http/url.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kAtOnce = 64;

Result<std::string> fetch(const std::string& base, std::string_view path, const std::string& api_key) {
  TRY(http::Response response, call_server(base, "GET", path, {}, api_key));
  if (response.status == 200) return std::move(response.body);
  return failure(ErrorCode::io, "GET {} returned status {}", path, response.status);
}

}  // namespace

Result<http::Response> call_server(const std::string& base, std::string_view method, std::string_view path,
                                   std::string body, const std::string& api_key) {
  constexpr int kTimeoutMs = 2000;
  constexpr std::uint64_t kPageMax = std::uint64_t{16} << 20;
  TRY(const http::Url at, http::parse_url(base));
  TRY(http::Client client, http::Client::connect({.host = at.host,
                                                  .port = at.port,
                                                  .tls = at.tls,
                                                  .timeout_ms = kTimeoutMs,
                                                  .body_bytes_max = kPageMax}));
  http::Headers headers;
  if (!api_key.empty()) headers.add("Authorization", "Bearer " + api_key);
  if (!body.empty()) headers.add("Content-Type", "application/json");
  return client.request(method, path, std::move(body), headers);
}

std::vector<std::string> servers_at(const std::vector<std::string>& urls, const std::string& api_key,
                                    std::string_view type) {
  std::vector<std::string> found;
  for (const std::string& url : urls) {
    const auto listed = fetch(url, "/workers", api_key);
    boost::system::error_code wrong;
    const boost::json::value body = boost::json::parse(listed ? *listed : "", wrong);
    const boost::json::value* workers = wrong ? nullptr : body.find_pointer("/workers", wrong);
    if (workers == nullptr || !workers->is_array()) {
      found.push_back(url);
      continue;
    }
    for (const boost::json::value& worker : workers->get_array()) {
      const boost::json::value* is = worker.find_pointer("/worker_type", wrong);
      if (!type.empty() && !(is != nullptr && is->is_string() && is->get_string() == type)) continue;
      if (const boost::json::value* at = worker.find_pointer("/url", wrong); at != nullptr && at->is_string())
        if (const std::string at_url(at->get_string()); std::ranges::find(found, at_url) == found.end())
          found.push_back(at_url);  // the ranks of a server have the same URL, which is added once
    }
  }
  return found;
}

std::map<std::string, Result<std::string>> pages_of(const std::vector<std::string>& servers,
                                                    std::string_view path, const std::string& api_key) {
  std::map<std::string, Result<std::string>> all;
  for (std::span<const std::string> left = servers; !left.empty();) {
    const auto some = left.first(std::min(left.size(), kAtOnce));
    left = left.subspan(some.size());
    std::vector<std::future<Result<std::string>>> responses;
    for (const std::string& server : some)
      responses.push_back(std::async(std::launch::async, fetch, server, path, api_key));
    for (std::size_t i = 0; i < some.size(); ++i) all.emplace(some[i], responses[i].get());
  }
  return all;
}

std::map<std::string, Result<std::string>> metrics_pages(const std::vector<std::string>& servers,
                                                         const std::string& api_key) {
  return pages_of(servers, "/metrics", api_key);
}

}  // namespace octavo::fleet
