#include "serve/http_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "request/prometheus_text.h"

namespace octavo {
namespace {

// Returns a label for the method. Clients can send any text as method, so unknown ones become "other".
std::string_view known_method(std::string_view method) {
  constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",    "POST", "PUT",
                                                        "DELETE", "OPTIONS", "PATCH"};
  return std::ranges::find(kMethods, method) == kMethods.end() ? "other" : method;
}

void begin(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(text), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

}  // namespace

void HttpMetrics::count(std::string_view handler, const http::Answered& answered) {
  const std::string_view method = known_method(answered.method);
  const std::lock_guard lock(mutex_);
  ++requests_[fmt::format("handler=\"{}\",method=\"{}\",status=\"{}xx\"", escaped_label(handler), method,
                          answered.status / 100)];
  Handler& of = handlers_.try_emplace(std::string(handler)).first->second;
  ++of.requests.count;
  of.requests.bytes += static_cast<double>(answered.request_bytes);
  ++of.responses.count;
  of.responses.bytes += static_cast<double>(answered.response_bytes);
  seconds_.try_emplace({std::string(handler), std::string(method)}, Histogram({.1, .5, 1}))
      .first->second.observe(answered.seconds);
  all_seconds_.observe(answered.seconds);
}

std::string HttpMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto out = std::back_inserter(text);
  begin(text, "http_requests_total", "counter", "Number of requests, by route, method and class of status.");
  for (const auto& [labels, count] : requests_)
    fmt::format_to(out, "http_requests_total{{{}}} {}\n", labels, count);
  const auto sizes = [&](std::string_view name, std::string_view help, Sizes Handler::* which) {
    begin(text, name, "summary", help);
    for (const auto& [handler, of] : handlers_)
      fmt::format_to(out, "{0}_count{{handler=\"{1}\"}} {2}\n{0}_sum{{handler=\"{1}\"}} {3}\n", name,
                     escaped_label(handler), (of.*which).count, (of.*which).bytes);
  };
  sizes("http_request_size_bytes", "Content-Length of requests, by route.", &Handler::requests);
  sizes("http_response_size_bytes", "Content-Length of answers, by route.", &Handler::responses);
  begin(text, "http_request_duration_highr_seconds", "histogram",
        "Time from a request to the end of its answer.");
  append_histogram(text, "http_request_duration_highr_seconds", "", all_seconds_);
  begin(text, "http_request_duration_seconds", "histogram",
        "Time from a request to the end of its answer, by route and method.");
  for (const auto& [key, histogram] : seconds_)
    append_histogram(text, "http_request_duration_seconds",
                     fmt::format("handler=\"{}\",method=\"{}\"", escaped_label(key.first), key.second),
                     histogram);
  return text;
}

}  // namespace octavo
