// A request that the router has received. Makes the calls to workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

// The client's id of the request, from X-Request-Id or one of --request-id-headers; else a new one.
std::string request_id(const RouteContext& context, const http::Headers& headers);

class Incoming {
 public:
  Incoming(const RouteContext& context, std::shared_ptr<http::Exchange> exchange, std::string tenant);

  const http::Request& request() const { return exchange_->request(); }
  const RouteRequest& route() const { return route_; }
  const std::string& tenant() const { return tenant_; }  // "": no tenant
  bool explains() const;                                 // whether the client requests an explanation of the
                                                         // choice
  std::int64_t arrived_us() const { return arrived_us_; }
  double seconds() const;  // time since its arrival

  // Decodes the body's Content-Encoding, scans the body, and tokenises the prompt if the router has the
  // model's tokenizer. Takes up to a second for a prompt of 1 MiB. Safe on any thread. Returns an error
  // response if the body cannot be decoded.
  std::optional<http::Response> read();
  std::uint64_t body_bytes_max() const;  // upper limit of the body's size after read()
  bool knows_length() const;  // whether the router knows the exact number of prompt tokens
  void name_no_model();       // removes the model, so that any worker can be chosen and report that it does
                              // not serve the model

  // again: earlier attempts have used part of the client's own deadline.
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                 int timeout_ms, bool again) const;
  std::shared_ptr<const std::string> body() const;  // the client's body; may be null

  bool past_own_deadline() const;
  int left_ms() const;  // remaining time of the router's limit or of the client's own deadline

 private:
  bool is_encoded() const;  // the body has a Content-Encoding

  const RouteContext context_;
  const std::shared_ptr<http::Exchange> exchange_;
  const std::int64_t arrived_us_;
  const std::string tenant_;
  http::Headers headers_;  // headers to send to workers
  RouteRequest route_;
};

}  // namespace octavo::fleet
