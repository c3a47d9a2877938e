#include "fleet/relay/relay.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace octavo::fleet {
namespace {

constexpr std::array<std::string_view, 13> kOwnHeaders{"connection",
                                                       "keep-alive",
                                                       "proxy-authenticate",
                                                       "proxy-authorization",
                                                       "proxy-connection",
                                                       "te",
                                                       "trailer",
                                                       "transfer-encoding",
                                                       "upgrade",
                                                       "content-length",
                                                       "host",
                                                       "date",
                                                       "expect"};

std::vector<std::string_view> connection_options(const http::Headers& headers) {
  std::vector<std::string_view> options;
  for (const auto& [name, value] : headers) {
    if (!http::equal_ignoring_case(name, "Connection")) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view item = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      const std::size_t begin = std::min(item.find_first_not_of(" \t"), item.size());
      item = item.substr(begin, item.find_last_not_of(" \t") + 1 - begin);
      if (!item.empty()) options.push_back(item);
    }
  }
  return options;
}

bool contains(const auto& names, std::string_view name) {
  return std::ranges::any_of(names,
                             [&](std::string_view each) { return http::equal_ignoring_case(name, each); });
}

}  // namespace

http::Headers passed_on(const http::Headers& headers) {
  const std::vector<std::string_view> named = connection_options(headers);
  http::Headers out;
  for (const auto& [name, value] : headers)
    if (!contains(kOwnHeaders, name) && !contains(named, name)) out.add(name, value);
  return out;
}

http::Headers passed_back(const http::Headers& headers, std::string_view engine_url) {
  http::Headers out;
  for (const auto& [name, value] : passed_on(headers)) {
    const bool is_location =
        http::equal_ignoring_case(name, "Location") || http::equal_ignoring_case(name, "Content-Location");
    const bool at_engine = value.starts_with(engine_url) && value.substr(engine_url.size()).starts_with('/');
    out.add(name, is_location && at_engine ? value.substr(engine_url.size()) : value);
  }
  return out;
}

std::string target_of(const http::Request& request) {
  return request.query.empty() ? request.encoded_path : request.encoded_path + "?" + request.query;
}

bool requests_websocket(const http::Request& request) {
  return contains(connection_options(request.headers), "upgrade") &&
         http::equal_ignoring_case(request.headers.find("Upgrade").value_or(""), "websocket");
}

bool is_event_stream(const http::Response& answer) {
  return answer.content_type.starts_with("text/event-stream");
}

bool is_stream(const http::Response& answer) {
  return is_event_stream(answer) ||
         (!answer.headers.find("Content-Length") && !answer.content_type.starts_with("application/json"));
}

}  // namespace octavo::fleet
