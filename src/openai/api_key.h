// Checks the API keys of requests, for servers and routers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace octavo {

// Compares digests of equal length in constant time, so that the response time reveals nothing
// about the keys.
class ApiKeys {
 public:
  explicit ApiKeys(const std::vector<std::string>& keys);

  // Returns true if there are no keys. Then every client is allowed.
  bool open() const { return digests_.empty(); }
  // authorization: value of the Authorization header, "Bearer KEY".
  bool allows(std::string_view authorization) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view text);

  std::vector<Digest> digests_;
};

// Returns a 401 response if the request has no valid key, in `Authorization: Bearer KEY` or in Anthropic's
// `X-Api-Key: KEY`.
std::optional<http::Response> unauthorized(const ApiKeys& keys, const http::Request& request);

// Returns the request's key as "Bearer KEY", from the same headers as unauthorized(); "" if the request has
// none.
std::string authorization_of(const http::Request& request);

}  // namespace octavo
