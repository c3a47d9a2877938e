// HTTP calls that read and change the state of servers. Each call blocks until the response arrives.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/message.h"

namespace octavo::fleet {

// Sends a request to the server at `base`, with the API key if set. Errors: io, no response arrives.
Result<http::Response> ask_server(const std::string& base, std::string_view method, std::string_view path,
                                  std::string body, const std::string& api_key);

// The replicas at these URLs. If a URL is a router (`octavo route`), its workers; otherwise the URL itself.
// type: only workers of this worker_type, "prefill" or "decode"; "": all.
std::vector<std::string> servers_at(const std::vector<std::string>& urls, const std::string& api_key,
                                    std::string_view type = "");

// Reads GET /metrics of all servers; requests run in parallel. A page can be an error: io, or a status other
// than 200.
std::map<std::string, Result<std::string>> metrics_pages(const std::vector<std::string>& servers,
                                                         const std::string& api_key);

}  // namespace octavo::fleet
