// A request that the router has received, and the calls to workers made from it.
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
  bool wants_cost() const;                               // the client requests the cost
  // Label of the tenant in accounts. Without --tenants it is the name that a gateway sends.
  std::string account() const;
  bool explains() const;                                 // the client requests an explanation of the choice
  std::int64_t arrived_us() const { return arrived_us_; }
  std::string_view id() const { return headers_.find("X-Request-Id").value_or(""); }
  double seconds() const;  // time since the arrival

  // Decodes the body's Content-Encoding, scans the body, and tokenises the prompt if the router has the
  // model's tokenizer. Takes up to a second for a prompt of 1 MiB. Thread-safe. Returns an error response if
  // the body cannot be decoded.
  std::optional<http::Response> read();
  std::uint64_t body_bytes_max() const;  // maximum size of the body after read()
  bool knows_length() const;             // the exact number of prompt tokens is known
  void name_no_model();  // removes the model, so that any worker can report that it does not serve it

  // Returns the request for a call to this endpoint. again: an earlier attempt has used a part of the
  // client's deadline.
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                 int timeout_ms, bool again) const;
  std::shared_ptr<const std::string> body() const;  // the client's body; may be null

  bool past_own_deadline() const;
  int left_ms() const;  // time until the router's timeout or the client's deadline

 private:
  bool is_encoded() const;

  const RouteContext context_;
  const std::shared_ptr<http::Exchange> exchange_;
  const std::int64_t arrived_us_;
  const std::string tenant_;
  http::Headers headers_;  // headers for workers
  RouteRequest route_;
};

}  // namespace octavo::fleet
