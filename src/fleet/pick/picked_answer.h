// Follows the response to a request whose endpoint was picked. The gateway sends a copy of the response to
// the picker. Reports the outcome to the balancer and to the metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fleet/balance/balancer.h"
#include "fleet/pick/grpc_body.h"
#include "fleet/pick/pick_metrics.h"

namespace octavo::fleet {

class PickedAnswer {
 public:
  explicit PickedAnswer(Balancer& balancer) : balancer_(balancer) {}

  // The gateway sends the request to the endpoint of `choice`.
  void sent(Choice choice);
  const Choice& choice() const { return choice_; }
  // an endpoint was picked, and the response has not ended
  bool picked() const { return choice_.endpoint != nullptr; }

  // The response is a gRPC response to a request for `path`. `streams`: it has a message for each token.
  void grpc(std::string_view path, bool streams);
  void content_type(std::string_view type);
  void piece(std::string_view bytes);
  // Returns the usage in the part of the response that has arrived. Returns nullopt if this part has none.
  std::optional<boost::json::object> usage() const;
  // Fills in the fields about the response, and ends the booking at the first call.
  void ended(std::int64_t arrived_us, PickedRequest& request);

 private:
  void report_latency(const PickedRequest& request) const;

  Balancer& balancer_;
  Choice choice_;
  std::int64_t sent_us_ = 0, first_byte_us_ = 0;
  std::uint64_t bytes_ = 0;
  bool streams_ = false;
  std::string tail_;  // last bytes of the response, which contain the usage
  std::optional<GrpcAnswer> grpc_;  // nullopt: an HTTP response
};

}  // namespace octavo::fleet
