#include "http/answer_head.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace octavo::http {
namespace {

bool breaks_lines(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

void append_field(std::string& head, std::string_view name, std::string_view value) {
  if (breaks_lines(name) || breaks_lines(value)) return;
  head.append(name).append(": ").append(value).append("\r\n");
}

void append_date(std::string& head) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  fmt::format_to(std::back_inserter(head), "Date: {:%a, %d %b %Y %H:%M:%S} GMT\r\n",
                 fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

bool allows(const std::vector<std::string>& origins, std::string_view origin) {
  return std::ranges::any_of(origins, [&](const std::string& o) { return o == "*" || o == origin; });
}

void append_cors(std::string& head, const CorsOptions& cors, std::string_view origin) {
  if (!allows(cors.origins, origin)) return;
  const bool any = std::ranges::find(cors.origins, "*") != cors.origins.end();
  append_field(head, "Access-Control-Allow-Origin", any && !cors.allow_credentials ? "*" : origin);
  if (!any || cors.allow_credentials) append_field(head, "Vary", "Origin");
  if (cors.allow_credentials) append_field(head, "Access-Control-Allow-Credentials", "true");
}

}  // namespace

std::string answer_head(const Response& response, std::optional<std::size_t> body_bytes,
                        const AnswerForm& form, const std::optional<CorsOptions>& cors) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  append_date(head);
  if (!response.content_type.empty()) append_field(head, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) append_field(head, name, value);
  if (!form.origin.empty() && cors) append_cors(head, *cors, form.origin);
  if (body_bytes && response.status != 204 && response.status != 304)
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", *body_bytes);
  if (!body_bytes && form.chunks) head += "Transfer-Encoding: chunked\r\n";
  head += form.keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

std::optional<Response> preflight_answer(const Request& request, const CorsOptions& cors) {
  const auto method = request.headers.find("Access-Control-Request-Method");
  if (request.method != "OPTIONS" || !request.headers.find("Origin") || !method) return std::nullopt;
  const auto wanted = request.headers.find("Access-Control-Request-Headers");
  const auto listed = [](const std::vector<std::string>& allowed, std::string_view requested) {
    return allowed == std::vector<std::string>{"*"} ? std::string(requested)
                                                    : fmt::format("{}", fmt::join(allowed, ", "));
  };
  Response response{.status = 204, .content_type = ""};
  response.headers.add("Access-Control-Allow-Methods", listed(cors.methods, *method));
  if (wanted) response.headers.add("Access-Control-Allow-Headers", listed(cors.headers, *wanted));
  response.headers.add("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace octavo::http
