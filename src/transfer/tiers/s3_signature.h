// Signs requests to an S3 store with AWS Signature Version 4 (docs.aws.amazon.com, "Authenticating
// Requests: Authorization Header"). The signature covers the complete body.
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
  std::string_view host{};   // value of the Host header
  std::string_view path{};   // path of the URL as it is sent
  std::string_view query{};  // query of the URL as it is sent: sorted by name, each parameter with '='
  std::span<const std::byte> body{};
};

// Returns the headers to send in addition to Host. now: current time; a store rejects times that differ too
// much from its clock.
http::Headers s3_headers(const S3Request& request, const StoreKeys& keys, std::time_t now);

}  // namespace octavo
