#include "transfer/tiers/s3_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/quoted_text.h"
#include "http/url.h"
#include "transfer/tiers/s3_signature.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 2> kSchemes{"http://", "https://"};
// A request that failed after more than this time, in microseconds, is not retried.
constexpr std::int64_t kHungUpUs = 1'000'000;
constexpr std::size_t kErrorBytesMax = 64 << 10;

Result<http::Client> connected(const S3Address& address) {
  auto client = http::Client::connect(
      {.host = address.host, .port = address.port, .tls = address.tls, .timeout_ms = address.silence_ms});
  if (!client) return failure(ErrorCode::io, "{}", client.error().message);
  return client;
}

std::unexpected<Error> refused(int status, std::string_view body) {
  if (status < 400) return failure(ErrorCode::corrupt, "the store sent an invalid reply: {}", status);
  std::string_view code = body;
  if (const auto at = body.find("<Code>"); at != body.npos) {
    code = body.substr(at + 6);
    code = code.substr(0, code.find('<'));
  }
  return failure(ErrorCode::unavailable, "the store returned an error: {} {}", status,
                 quoted_text(code.substr(0, 100)));
}

}  // namespace

bool is_s3_url(std::string_view text) {
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return text.starts_with(scheme); });
}

Result<S3Address> parse_s3_url(std::string_view url) {
  TRY(http::Url parsed, http::parse_url(url));
  const bool plain = std::ranges::all_of(parsed.target, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/").contains(c);
  });
  if (!plain || parsed.target.find("//") != std::string::npos)
    return invalid("", "bucket and prefix may contain only letters, digits and -._~, got {}",
                   quoted_text(parsed.target));
  if (!parsed.target.ends_with('/')) parsed.target += '/';
  if (parsed.target == "/") return invalid("", "the URL has no bucket: write http://host/bucket/prefix");
  return S3Address{.host = std::move(parsed.host),
                   .port = parsed.port,
                   .tls = parsed.tls,
                   .folder = std::move(parsed.target)};
}

Result<std::unique_ptr<StoreClient>> S3Client::connect(const S3Address& address, const StoreKeys& keys) {
  TRY(http::Client client, connected(address));
  return std::unique_ptr<StoreClient>(new S3Client(address, keys, std::move(client)));
}

// Sends a request and reads the head of the response. If the server has closed the idle connection, retries
// once on a new connection.
Result<http::Response> S3Client::open(std::string_view method, std::string_view key,
                                      std::span<const std::byte> body) {
  std::string path = address_.folder + std::string(key);
  std::ranges::replace(path, ':', '/');
  const std::string host = http::host_header(address_.host, address_.port, address_.tls);
  const http::Headers headers = s3_headers(
      {.method = method, .host = host, .path = path, .query = {}, .body = body}, keys_, std::time(nullptr));
  const auto send = [&] {
    return client_.open(method, path, {reinterpret_cast<const char*>(body.data()), body.size()}, headers);
  };
  const std::int64_t began = now_us();
  auto head = send();
  if (!head && used_ && now_us() - began < kHungUpUs) {
    TRY(client_, connected(address_));
    head = send();
  }
  used_ = true;
  if (head) return head;
  return failure(ErrorCode::io, "{}", head.error().message);
}

// Reads the rest of a response whose body is not a KV block.
Result<std::string> S3Client::rest() {
  std::string body;
  for (;;) {
    auto piece = client_.read();
    if (!piece) return failure(ErrorCode::io, "{}", piece.error().message);
    if (!*piece) return body;
    body += **piece;
    if (body.size() > kErrorBytesMax) return failure(ErrorCode::corrupt, "the store's reply is too long");
  }
}

// Returns false if the server responds 404.
Result<bool> S3Client::send(std::string_view method, std::string_view key, std::span<const std::byte> body) {
  TRY(const http::Response head, open(method, key, body));
  TRY(const std::string text, rest());
  if (head.status / 100 == 2) return true;
  if (head.status == 404 && method != "PUT") return false;
  return refused(head.status, text);
}

Result<std::size_t> S3Client::leading(std::span<const std::string> keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    TRY(const bool stored, send("HEAD", keys[i]));
    if (!stored) return i;
  }
  return keys.size();
}

Result<std::vector<bool>> S3Client::contains(std::span<const std::string> keys) {
  std::vector<bool> all;
  for (const std::string& key : keys) {
    TRY(const bool stored, send("HEAD", key));
    all.push_back(stored);
  }
  return all;
}

Result<bool> S3Client::get(std::string_view key, std::span<std::byte> value) {
  TRY(const http::Response head, open("GET", key));
  if (head.status != 200) {
    TRY(const std::string text, rest());
    if (head.status == 404) return false;
    return refused(head.status, text);
  }
  std::size_t got = 0;
  for (;;) {
    auto piece = client_.read();
    if (!piece) return failure(ErrorCode::io, "{}", piece.error().message);
    if (!*piece) break;
    if ((*piece)->size() > value.size() - got)
      return failure(ErrorCode::corrupt, "the store returned more than {} bytes for a KV block",
                     value.size());
    std::memcpy(value.data() + got, (*piece)->data(), (*piece)->size());
    got += (*piece)->size();
  }
  if (got != value.size())
    return failure(ErrorCode::corrupt, "the store returned {} bytes for a KV block of {} bytes", got,
                   value.size());
  return true;
}

Result<> S3Client::set(std::string_view key, std::span<const std::byte> value) {
  TRY_VOID(send("PUT", key, value));
  return {};
}

Result<> S3Client::remove(std::span<const std::string> keys) {
  for (const std::string& key : keys) TRY_VOID(send("DELETE", key));
  return {};
}

}  // namespace octavo
