// Blocking gRPC client for one call with one message in each direction, on a new connection without TLS.
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
  int timeout_ms = 5000;  // for the complete call
  std::size_t reply_bytes_max = std::size_t{1} << 20;
};

// Returns the reply. Errors: those of http::Client::connect; io if the response is not gRPC, is too long or
// has a status other than 0; unavailable after timeout_ms.
Result<std::string> call(const UnaryCall& call, std::string_view message);

}  // namespace octavo::grpc
