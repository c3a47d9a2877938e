// Checks API keys.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace octavo {

// Compares a presented key with each allowed one in a time that depends on neither: digests of fixed length,
// all of them, without an early end.
class ApiKeys {
 public:
  explicit ApiKeys(const std::vector<std::string>& keys);

  // No keys are set: every client is allowed.
  bool open() const { return digests_.empty(); }
  // `authorization`: the header's value, "Bearer KEY".
  bool allows(std::string_view authorization) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view text);

  std::vector<Digest> digests_;
};

// The 401 for a request without a right key, as `Authorization: Bearer KEY` or Anthropic's `X-Api-Key: KEY`.
std::optional<http::Response> unauthorized(const ApiKeys& keys, const http::Request& request);

}  // namespace octavo
