// A request as the router has received it; builds the calls to workers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

class Incoming {
 public:
  Incoming(const RouteContext& context, std::shared_ptr<http::Exchange> exchange, std::string tenant);

  const http::Request& request() const { return exchange_->request(); }
  const RouteRequest& route() const { return route_; }
  const std::string& tenant() const { return tenant_; }  // "" without a tenant
  bool explains() const;                                 // the client requests the reasons for the choice
  std::int64_t arrived_us() const { return arrived_us_; }
  double seconds() const;  // since its arrival

  // Scans the body, and tokenizes the prompt if the router has the model's tokenizer: up to a second for a
  // prompt of 1 MiB. On any thread.
  void read();
  bool knows_length() const;  // the replica must count the same number of prompt tokens
  void name_no_model();       // any worker may say that it does not serve it

  // again: earlier attempts have taken part of the client's own deadline.
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                 int timeout_ms, bool again) const;
  std::shared_ptr<const std::string> body() const;  // the client's; may be null

  bool past_own_deadline() const;
  int left_ms() const;  // of the router's limit for the request, or of the client's own

 private:
  const RouteContext context_;
  const std::shared_ptr<http::Exchange> exchange_;
  const std::int64_t arrived_us_;
  const std::string tenant_;
  http::Headers headers_;  // as they go to workers
  RouteRequest route_;
};

}  // namespace octavo::fleet
