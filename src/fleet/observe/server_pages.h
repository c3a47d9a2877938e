// Blocking HTTP requests to servers, for programs that read metrics and model lists.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/message.h"

namespace octavo::fleet {

// Returns the response with any status. Returns an `io` error if the server does not respond. An empty
// `api_key` is not sent.
Result<http::Response> call_server(const std::string& base, std::string_view method, std::string_view path,
                                   std::string body, const std::string& api_key);

// Replaces the URL of each `octavo route` by the URLs of its workers, and keeps all other URLs. `type`
// ("prefill" or "decode") selects workers with this worker_type; "" selects all workers.
std::vector<std::string> servers_at(const std::vector<std::string>& urls, const std::string& api_key,
                                    std::string_view type = "");

// Reads a page of all servers concurrently. A server that does not respond, or responds with a status other
// than 200, has an error as its page.
std::map<std::string, Result<std::string>> pages_of(const std::vector<std::string>& servers,
                                                    std::string_view path, const std::string& api_key);
// Reads GET /metrics of all servers.
std::map<std::string, Result<std::string>> metrics_pages(const std::vector<std::string>& servers,
                                                         const std::string& api_key);

}  // namespace octavo::fleet
