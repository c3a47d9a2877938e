#include "transfer/tiers/s3_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"
#include "base/sha256.h"

namespace octavo {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string hmac(std::string_view key, std::string_view text) {
  std::string digest(32, '\0');
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(),
             reinterpret_cast<unsigned char*>(digest.data()), &size) != nullptr &&
        size == digest.size());
  return digest;
}

std::string time_text(std::time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts)};
}

}  // namespace

http::Headers s3_headers(const S3Request& request, const StoreKeys& keys, std::time_t now) {
  if (keys.access.empty()) return {};
  const std::string body = sha256(request.body), time = time_text(now), day = time.substr(0, 8);
  const std::string region = keys.region.empty() ? "us-east-1" : keys.region;
  std::string named = "host;x-amz-content-sha256;x-amz-date";
  std::string canonical = fmt::format("{}\n{}\n{}\nhost:{}\nx-amz-content-sha256:{}\nx-amz-date:{}\n",
                                      request.method, request.path, request.query, request.host, body, time);
  http::Headers headers{{"x-amz-content-sha256", body}, {"x-amz-date", time}};
  if (!keys.session.empty()) {
    named += ";x-amz-security-token";
    canonical += fmt::format("x-amz-security-token:{}\n", keys.session);
    headers.add("x-amz-security-token", keys.session);
  }
  canonical += fmt::format("\n{}\n{}", named, body);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, sha256(bytes_of(canonical)));
  const std::string key = hmac(hmac(hmac(hmac("AWS4" + keys.secret, day), region), "s3"), "aws4_request");
  std::string signature;
  for (const char byte : hmac(key, to_sign))
    signature += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  headers.add("Authorization",
              fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}", keys.access,
                          scope, named, signature));
  return headers;
}

}  // namespace octavo
