// One request on its way through the router: to a worker, to another one when that fails before the client
// has seen a byte or where its answer broke off, and its answer back, streams piece by piece.
//
// | state      | event                                 | next state                                      |
// |------------|---------------------------------------|-------------------------------------------------|
// | Arrived    | a worker serves its model             | Queued (--queue-size), Prefilling (P/D) or Sent |
// |            | none does                             | Over: 404                                       |
// | Queued     | a worker has room                     | Prefilling or Sent                              |
// |            | too many wait, or for too long        | Over: 429, 408                                  |
// | Prefilling | the prompt is computed, or cannot be  | Prefilling (another worker) or Sent             |
// | Sent       | refused, lost                         | Sent (another worker), Queued or Over           |
// |            | no first byte for --hedge-after-ms    | Sent, with two attempts                         |
// |            | the first byte of an answer           | Answering                                       |
// | Answering  | its end                               | Over                                            |
// |            | its stream breaks                     | Sent (another worker continues it) or Over: 502 |
// | any        | the client leaves, the time is over   | Over: 499, 504                                  |
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleet/route/attempt.h"
#include "fleet/route/incoming.h"
#include "fleet/route/route_context.h"
#include "fleet/route/stream_back.h"
#include "fleet/route/tenants.h"

namespace octavo::fleet {

// Lives from the request's admission until no attempt is under way. Everything happens on the thread of its
// loop, which its client's connection is on, too.
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  // On the loop's thread. share: kept until the request ends.
  static void start(const RouteContext& context, http::ClientLoop& loop,
                    std::shared_ptr<http::Exchange> exchange, TenantShare share, std::string tenant);
  ~Forwarding();
  Forwarding(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             TenantShare share, std::string tenant);

 private:
  using AttemptPointer = std::shared_ptr<Attempt>;
  struct Arrived {};
  struct Queued {
    std::uint64_t id = 0;  // in the queue; 0: during the pause before it enters again
  };
  struct Prefilling {
    std::shared_ptr<const std::string> body;  // of the prefill request
    AttemptPointer attempt;
  };
  struct Sent {
    std::array<AttemptPointer, 2> attempts = {};  // two while a hedge is under way; none during a backoff
  };
  struct Answering {
    AttemptPointer attempt;
  };
  struct Over {};
  template <class State>
  bool is() const {
    return std::holds_alternative<State>(state_);
  }
  bool waits() const { return is<Sent>() && !back_.begun(); }  // the client has seen nothing of an answer

  // Results of the attempts so far.
  struct History {
    int sent = 0;                  // attempts
    int tries = 0;                 // since the request came or its stream broke
    int losses = 0;                // attempts whose worker had the request, before the client has seen a byte
    int refusals = 0;              // for lack of room, since the queue let it go first
    bool prefill_is_busy = false;  // a prefill worker had no room
    std::vector<EndpointId> tried = {};
    std::vector<std::shared_ptr<const Endpoint>> suspects = {};  // whose failures the request may have caused
    std::optional<http::Response> refusal = {};  // the last one, for the client if nobody does better
  };

  // Before the first attempt.
  void begin(const std::shared_ptr<http::Exchange>& exchange);
  void admit();
  void find_model();
  void go();
  // The queue (forwarding_queue.cc).
  void enter();
  void wait_for_room();
  void wait_again();
  void leave_queue(FlowOutcome outcome);
  // The prompt at a prefill worker (forwarding_prefill.cc).
  std::shared_ptr<const std::string> prefill_request();
  void prefill(std::shared_ptr<const std::string> body);
  void on_prefilled(Attempt& attempt, const Result<>& result);
  void spill(const std::string& reason);
  void decode(const std::optional<std::string>& params);
  // The same prompt at a prefill and a decode worker at once (forwarding_bootstrap.cc).
  bool is_bootstrapped() const;
  void begin_halves();
  bool send_prefill_half();
  void on_prefill_half(Attempt& attempt, const Result<>& result);

  // Attempts.
  AttemptPointer send();
  bool send_again();
  ChoiceOptions choice_options(Role part) const;
  AttemptPointer open(Choice choice, std::shared_ptr<const std::string> body, int timeout_ms);
  int blind_wait() const;
  void hedge();
  std::vector<AttemptPointer> under_way() const;
  void settle(Attempt& attempt, Outcome outcome);
  void drop_attempts(Outcome outcome);

  // Events of attempts.
  void on_body(Attempt& attempt, std::string_view piece);
  void on_end(Attempt& attempt, const Result<>& result);
  void on_whole(Attempt& attempt);
  void on_trouble(Attempt& attempt, Trouble trouble);
  void on_refused(Attempt& attempt);
  void on_lost(Attempt& attempt, const Error& error);
  bool lead(Attempt& attempt);
  void blame_suspects(int status);
  void retry(const std::string& reason);
  void retry_later(const std::string& reason);
  void give_up(const std::string& reason);
  bool migrate();

  // The client's answer (forwarding_answer.cc).
  http::Response for_client(const Attempt& attempt, http::Response answer) const;
  std::string_view response_of(std::string_view answer) const;
  void note_usage(Attempt& attempt, std::string_view bytes) const;
  void check_usage(const Attempt& attempt) const;
  void start_stream(Attempt& attempt);
  void send_back(Attempt& attempt, std::string_view piece);
  void answer(http::Response response);
  void refuse(int status, const std::string& message, std::string_view param = {});
  void break_off();
  void refuse_late();
  void finish();
  void client_gone();
  void end(int status);

  const RouteContext context_;
  Balancer& balancer_;
  http::ClientLoop& loop_;
  const TenantShare share_;
  Incoming in_;
  StreamBack back_;
  const RequestTrace trace_;
  std::variant<Arrived, Queued, Prefilling, Sent, Answering, Over> state_;
  History history_;
  std::shared_ptr<const std::string> body_;  // null for the client's
  std::shared_ptr<const std::string> client_body_;  // with a bootstrap: body_ without its fields; likewise
  AttemptPointer prefill_half_;                     // the current try's; null without a bootstrap
  bool in_halves_ = false;                          // see forwarding_bootstrap.cc
  std::string owner_;                        // name of the worker that has the stored response; "" if unknown
  std::optional<std::uint64_t> draw_ = {};   // of the next choice of a decode worker, if reused
  bool admitted_;                            // counts in Admission
  bool prefilled_ = false;                   // a prefill worker has computed the prompt
};

}  // namespace octavo::fleet
