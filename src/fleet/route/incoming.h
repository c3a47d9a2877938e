// A request that the router has received, with the fields that routing needs. Builds the HTTP requests for
// workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

// Returns the request's id from X-Request-Id or a header of --request-id-headers. Returns a new id if the
// client sent none.
std::string request_id(const RouteContext& context, const http::Headers& headers);

// Returns the headers for workers: the client's headers without the tenants' keys, plus the tenant's name
// and the router's API key if it has one. `tenant` is "" if the client is no tenant.
http::Headers headers_for_workers(const RouterOptions& options, const http::Headers& received,
                                  const std::string& tenant);

class Incoming {
 public:
  Incoming(const RouteContext& context, std::shared_ptr<http::Exchange> exchange, std::string tenant);

  const http::Request& request() const { return exchange_->request(); }
  const RouteRequest& route() const { return route_; }
  const std::string& tenant() const { return tenant_; }  // "": no tenant
  bool wants_cost() const;
  // Returns the tenant's name for accounts. Without --tenants, the name comes from the gateway's request
  // header.
  std::string account() const;
  bool explains() const;
  std::int64_t arrived_us() const { return arrived_us_; }
  std::string_view id() const { return headers_.find("X-Request-Id").value_or(""); }
  double seconds() const;

  // Decodes the body's Content-Encoding, scans the body, and tokenises the prompt if the router has the
  // model's tokenizer. May run on any thread, and takes up to a second for a prompt of 1 MiB. Returns an
  // error response if the body cannot be decoded.
  std::optional<http::Response> read();
  std::uint64_t body_bytes_max() const;  // maximum size of the decoded body
  bool knows_length() const;
  // removes the model, so that any worker may get the request and report the unknown model
  void name_no_model();
  void drop_tag();  // removes Ollama's tag ":latest" from the model's name

  // Returns the HTTP request for this endpoint. `again` must be set if an earlier attempt has used some of
  // the time until the client's deadline.
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                 int timeout_ms, bool again) const;
  // Returns the request that reads the cost of an attempt from its worker.
  http::CallRequest cost_request(const Endpoint& endpoint, std::string_view cost_id) const;
  // the client's body; null if it is empty and the method is not POST
  std::shared_ptr<const std::string> body() const;

  bool past_own_deadline() const;
  int left_ms() const;  // time until the router's timeout or the client's deadline

 private:
  bool is_encoded() const;

  const RouteContext context_;
  const std::shared_ptr<http::Exchange> exchange_;
  const std::int64_t arrived_us_;
  const std::string tenant_;
  http::Headers headers_;  // for workers
  RouteRequest route_;
};

}  // namespace octavo::fleet
