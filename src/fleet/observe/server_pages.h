// HTTP requests to servers. A call returns after the response.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/message.h"

namespace octavo::fleet {

// Sends a request to the server at `base`, with the API key unless it is empty. Errors: io, no response.
Result<http::Response> ask_server(const std::string& base, std::string_view method, std::string_view path,
                                  std::string body, const std::string& api_key);

// Returns the URLs of replicas. If a URL is that of an `octavo route`, its workers; otherwise the URL. type:
// only workers of this worker_type ("prefill" or "decode"); "": all workers.
std::vector<std::string> servers_at(const std::vector<std::string>& urls, const std::string& api_key,
                                    std::string_view type = "");

// Reads GET /metrics of all servers concurrently. Errors of a page: io, or a status other than 200.
std::map<std::string, Result<std::string>> metrics_pages(const std::vector<std::string>& servers,
                                                         const std::string& api_key);

}  // namespace octavo::fleet
