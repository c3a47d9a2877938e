// One attempt to get the response to a request from one worker. It has the booking, the HTTP call, and the
// part of the response that was received but not forwarded yet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "fleet/relay/event_cutter.h"
#include "fleet/relay/request_trace.h"
#include "fleet/route/route_context.h"
#include "fleet/route/usage_report.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Must be used on the loop's thread.
class Attempt {
 public:
  // Callbacks. None is called after settle().
  struct Events {
    std::function<void(Attempt&, std::string_view piece)> body;
    std::function<void(Attempt&, const Result<>& result)> end;
    std::function<bool()> ready;                     // see http::CallEvents::ready
    std::function<void(Attempt&, Trouble)> trouble;  // must not own the Forwarding that owns the attempt
  };

  static std::shared_ptr<Attempt> open(const RouteContext& context, http::ClientLoop& loop, Choice choice,
                                       http::CallRequest request, Events events, int blind_wait_ms);
  Attempt(Balancer& balancer, Choice chosen);
  ~Attempt() { settle(Outcome::neither); }

  // Ends the call and the booking. Later calls have no effect.
  void settle(Outcome outcome);
  bool settled() const { return settled_; }
  void gather(std::string_view piece, std::size_t bytes_max);
  const Endpoint& worker() const { return *choice.endpoint; }

  Choice choice;
  http::Response answer = {};             // received, but not forwarded yet
  std::optional<UsageReport> usage = {};  // last usage that the response contains
  EventCutter events = {};  // splits the stream into events; used if the usage in the events must be changed
  const std::int64_t sent_us;
  double first_byte_s = 0;  // seconds from the request's arrival to the first byte of this answer
  bool hedges = false;     // this attempt is a hedge: the second of two concurrent attempts
  bool forgotten = false;  // see Trouble::forgotten
  RequestTrace::Call span = {};
  bool failed = false;        // the prefill worker could not compute the prompt
  std::string cost_id = {};   // value of kCostIdHeader
  bool reports_cost = false;  // the response has reported the cost, or the bill reads it

 private:
  Balancer& balancer_;
  std::weak_ptr<http::Call> call_;
  bool settled_ = false;
};

}  // namespace octavo::fleet
