// AWS Signature Version 4 for requests to an S3-style store (docs.aws.amazon.com, "Authenticating Requests:
// Authorization Header"): the whole body is signed.
#pragma once

#include <cstddef>
#include <ctime>
#include <span>
#include <string>
#include <string_view>

#include "http/message.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

struct S3Request {
  std::string_view method{};
  std::string_view host{};   // as the Host header says it
  std::string_view path{};   // as it is sent
  std::string_view query{};  // as it is sent, parameters by name, each with '='
  std::span<const std::byte> body{};
};

// The headers to send beside Host. `now`: the store refuses times that are far from its own.
http::Headers s3_headers(const S3Request& request, const StoreKeys& keys, std::time_t now);

}  // namespace octavo
