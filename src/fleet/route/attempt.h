// An attempt to get a request's answer from one worker: its booking, its call, and the received part of the
// answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "fleet/relay/request_trace.h"
#include "fleet/route/route_context.h"
#include "fleet/route/usage_report.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Use it on the loop's thread.
class Attempt {
 public:
  // Callbacks, until settle().
  struct Events {
    std::function<void(Attempt&, std::string_view piece)> body;
    std::function<void(Attempt&, const Result<>& result)> end;
    std::function<bool()> ready;                     // see http::CallEvents::ready
    std::function<void(Attempt&, Trouble)> trouble;  // must not own the attempt's owner
  };

  static std::shared_ptr<Attempt> open(const RouteContext& context, http::ClientLoop& loop, Choice choice,
                                       http::CallRequest request, Events events, int blind_wait_ms);
  Attempt(Balancer& balancer, Choice chosen);
  ~Attempt() { settle(Outcome::neither); }

  // Ends the call and the booking. Only the first call has an effect.
  void settle(Outcome outcome);
  bool settled() const { return settled_; }
  void gather(std::string_view piece, std::size_t bytes_max);  // appends the piece to the body of `answer`
  const Endpoint& worker() const { return *choice.endpoint; }

  Choice choice;
  http::Response answer = {};             // received, but not forwarded yet
  std::optional<UsageReport> usage = {};  // last usage in the answer
  const std::int64_t sent_us;
  bool hedges = false;     // this attempt is the hedge: the second of two attempts
  bool forgotten = false;  // see Trouble::forgotten
  RequestTrace::Call span = {};
  bool failed = false;  // prefill: the worker has not computed the prompt

 private:
  Balancer& balancer_;
  std::weak_ptr<http::Call> call_;
  bool settled_ = false;
};

}  // namespace octavo::fleet
