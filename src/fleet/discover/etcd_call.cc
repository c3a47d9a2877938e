#include "fleet/discover/etcd_call.h"

#include <utility>

#include "base/quoted_text.h"

namespace octavo::fleet {

Result<http::Client> etcd_connect(const http::Url& url, int timeout_ms) {
  constexpr std::uint64_t kAnswerBytesMax = 64 << 20;
  return http::Client::connect({.host = url.host,
                                .port = url.port,
                                .tls = url.tls,
                                .timeout_ms = timeout_ms,
                                .body_bytes_max = kAnswerBytesMax});
}

Result<std::string> etcd_call(http::Client& client, std::string_view path, std::string body) {
  constexpr std::size_t kQuotedMax = 200;
  TRY(http::Response answer, client.post_json(path, std::move(body)));
  if (answer.status != 200)
    return failure(ErrorCode::io, "{} returned HTTP status {}: {}", path, answer.status,
                   quoted_text(std::string_view(answer.body).substr(0, kQuotedMax)));
  return std::move(answer.body);
}

}  // namespace octavo::fleet
