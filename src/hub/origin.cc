#include "hub/origin.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

namespace octavo::hub {
namespace {

constexpr int kTimeoutMs = 30'000;           // for each wait for bytes
constexpr std::size_t kErrorBytesMax = 400;  // part of the server's message in an error

}  // namespace

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<Opened> Origin::request(std::string_view method, const http::Url& url,
                               const http::Headers& headers) const {
  http::Headers all = headers;
  all.add("User-Agent", "octavo");
  // no compression, so sizes are those of the files
  all.add("Accept-Encoding", "identity");
  all.add("Connection", "close");
  if (!anonymous() && same_origin(url, url_)) all.add("Authorization", authorization_);
  const auto exchange = [&]() -> Result<Opened> {
    TRY(http::Client client,
        http::Client::connect({.host = url.host,
                               .port = url.port,
                               .tls = url.tls,
                               .timeout_ms = kTimeoutMs,
                               .body_bytes_max = std::numeric_limits<std::uint64_t>::max()}));
    TRY(http::Response head, client.open(method, url.target, {}, all));
    return Opened{std::move(client), std::move(head), url};
  };
  auto answer = exchange();
  if (!answer && answer.error().code == ErrorCode::io)
    return failure(ErrorCode::unavailable, "no answer from {}: {}", url.host, answer.error().message);
  return answer;
}

Result<Opened> Origin::get(http::Url url, const http::Headers& headers) const {
  for (int redirects = 0;; ++redirects) {
    TRY(Opened answer, request("GET", url, headers));
    if (!is_redirect(answer.head.status) || redirects == kRedirectsMax) return answer;
    TRY(http::Url next, redirected(url, answer.head.headers.find("Location").value_or("")));
    if (url.tls && !next.tls)
      return invalid("", "{} redirects to {}, which is not encrypted", url.host, next.host);
    url = std::move(next);
  }
}

http::Headers range_from(std::uint64_t offset) {
  http::Headers headers;
  if (offset > 0) headers.add("Range", fmt::format("bytes={}-", offset));
  return headers;
}

Result<std::string> read_text(Opened& opened, std::size_t bytes_max, std::string_view what) {
  std::string body;
  for (;;) {
    const auto piece = opened.client.read();
    if (!piece) return failure(ErrorCode::unavailable, "{}: {}", opened.url.host, piece.error().message);
    if (!*piece) return body;
    body += **piece;
    if (body.size() > bytes_max) return invalid("model", "{} has more than {} bytes", what, bytes_max);
  }
}

std::unexpected<Error> unexpected_status(std::string_view what, std::string_view host,
                                         const http::Response& response, Backoff& backoff) {
  const int status = response.status;
  const std::string reason = printable(response.headers.find("X-Error-Message").value_or(""));
  const bool may_pass = status == 408 || status == 416 || status == 429 || status >= 500;
  if (const auto seconds = number(response.headers.find("Retry-After")); may_pass && seconds)
    backoff.at_least(std::chrono::seconds(std::min<std::uint64_t>(*seconds, 3600)));
  return field_failure("model", may_pass ? ErrorCode::unavailable : ErrorCode::invalid_argument,
                       "{}: {} returned {} {}{}{}", what, host, status, http::reason_phrase(status),
                       reason.empty() ? "" : ": ", reason);
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kErrorBytesMax));
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

std::optional<std::uint64_t> number(std::optional<std::string_view> text) {
  std::uint64_t value = 0;
  if (!text || text->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

}  // namespace octavo::hub
