#include "openai/api_key.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "openai/errors.h"

namespace octavo {

ApiKeys::Digest ApiKeys::digest(std::string_view text) {
  Digest out;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(digest(key));
}

bool ApiKeys::allows(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  const bool bearer = authorization.size() > kScheme.size() &&
                      http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme);
  const Digest given = digest(bearer ? authorization.substr(kScheme.size()) : "");
  bool found = false;
  for (const Digest& allowed : digests_)
    found |= CRYPTO_memcmp(given.data(), allowed.data(), given.size()) == 0;
  return found && bearer;
}

std::string authorization_of(const http::Request& request) {
  if (const auto bearer = request.headers.find("Authorization")) return std::string(*bearer);
  const auto key = request.headers.find("X-Api-Key");
  return key ? "Bearer " + std::string(*key) : "";
}

std::optional<http::Response> unauthorized(const ApiKeys& keys, const http::Request& request) {
  if (keys.open() || keys.allows(authorization_of(request))) return std::nullopt;
  return openai::error_response(401, "a valid API key is needed: Authorization: Bearer KEY");
}

}  // namespace octavo
