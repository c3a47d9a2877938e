// The answer to a picked request, whose pieces the gateway sends to the picker. Reports it to the balancer
// and the metrics.
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

  // The request is sent to the choice's endpoint.
  void sent(Choice choice);
  const Choice& choice() const { return choice_; }
  bool picked() const { return choice_.endpoint != nullptr; }  // the request was sent and has not ended

  void content_type(std::string_view type);
  void piece(std::string_view bytes);
  std::string_view tail() const { return tail_; }
  // Fills in the fields of the answer, and frees the booking. Later calls only fill in fields.
  void ended(std::int64_t arrived_us, PickedRequest& request);

 private:
  void report_latency(const PickedRequest& request) const;

  Balancer& balancer_;
  Choice choice_;  // without an endpoint, there is no booking
  std::int64_t sent_us_ = 0, first_byte_us_ = 0;
  std::uint64_t bytes_ = 0;
  bool event_stream_ = false;
  std::string tail_;  // end of the answer, with the usage
};

}  // namespace octavo::fleet
