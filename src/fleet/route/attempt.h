// A request at one worker: its booking, its connection, and the answer that has come.
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

// On the loop's thread.
class Attempt {
 public:
  // Not called once the attempt is settled.
  struct Events {
    std::function<void(Attempt&, std::string_view piece)> body;
    std::function<void(Attempt&, const Result<>& result)> end;
    std::function<bool()> ready;                     // see http::CallEvents
    std::function<void(Attempt&, Trouble)> trouble;  // must not own the attempt's owner
  };

  static std::shared_ptr<Attempt> open(const RouteContext& context, http::ClientLoop& loop, Choice choice,
                                       http::CallRequest request, Events events, int blind_wait_ms);
  Attempt(Balancer& balancer, Choice chosen);
  ~Attempt() { settle(Outcome::neither); }

  // Ends the call and the booking, once.
  void settle(Outcome outcome);
  bool settled() const { return settled_; }
  void gather(std::string_view piece, std::size_t bytes_max);  // into the answer's body
  const Endpoint& worker() const { return *choice.endpoint; }

  Choice choice;
  http::Response answer = {};             // the part received and not forwarded yet
  std::optional<UsageReport> usage = {};  // the last usage that the answer reported
  const std::int64_t sent_us;
  bool hedges = false;     // the second of two
  bool forgotten = false;  // see Trouble
  RequestTrace::Call span = {};
  bool failed = false;  // of a prefill worker: it has not computed the prompt

 private:
  Balancer& balancer_;
  std::weak_ptr<http::Call> call_;
  bool settled_ = false;
};

}  // namespace octavo::fleet
