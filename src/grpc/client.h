// Blocking gRPC client: one call with one message in each direction, over a new connection without TLS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::grpc {

struct UnaryCall {
  std::string host;
  std::uint16_t port = 0;
  std::string path;       // such as "/package.Service/Method"
  int timeout_ms = 5000;  // for the whole call
  std::size_t reply_bytes_max = std::size_t{1} << 20;
};

// Returns the reply's message. Errors: those of http::Client::connect; io: the answer is not gRPC, has
// another status than 0, or is too long; unavailable: no reply within timeout_ms.
Result<std::string> call(const UnaryCall& call, std::string_view message);

}  // namespace octavo::grpc
