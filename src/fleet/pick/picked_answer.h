// Follows the response to a request whose endpoint was picked. The gateway sends a copy of the response to
// the picker. Reports the outcome to the balancer and to the metrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fleet/balance/balancer.h"
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

  void content_type(std::string_view type);
  void piece(std::string_view bytes);
  std::string_view tail() const { return tail_; }
  // Fills in the fields about the response, and ends the booking at the first call.
  void ended(std::int64_t arrived_us, PickedRequest& request);

 private:
  void report_latency(const PickedRequest& request) const;

  Balancer& balancer_;
  Choice choice_;
  std::int64_t sent_us_ = 0, first_byte_us_ = 0;
  std::uint64_t bytes_ = 0;
  bool event_stream_ = false;
  std::string tail_;  // last bytes of the response, which contain the usage
};

}  // namespace octavo::fleet
