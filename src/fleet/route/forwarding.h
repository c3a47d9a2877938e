// One client request in the router. Forwards the request to a worker, and the worker's response to the
// client, streams piece by piece. The router tries another worker if a worker fails before the client has
// received a byte, or if a stream breaks that another worker can continue.
//
//   | state      | event                                 | next state                                      |
//   |------------|---------------------------------------|-------------------------------------------------|
//   | Arrived    | a worker serves its model             | Queued (--queue-size), Prefilling (P/D) or Sent |
//   |            | no worker serves its model            | Over: 404                                       |
//   | Queued     | a worker has capacity                 | Prefilling or Sent                              |
//   |            | too many wait, or for too long        | Over: 429, 408, 503                             |
//   | Prefilling | the worker has answered, or fails     | Prefilling (another worker) or Sent             |
//   | Sent       | refused, lost, no worker is available | Sent (another worker), Queued or Over           |
//   |            | no first byte for --hedge-after-ms    | Sent, with two attempts                         |
//   |            | the first byte of an answer           | Answering                                       |
//   | Answering  | its end                               | Over                                            |
//   |            | its stream breaks                     | Sent (another worker continues it) or Over: 502 |
//   | any        | client disconnects, deadline is over  | Over: 499, 504                                  |
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleet/route/attempt.h"
#include "fleet/route/bill.h"
#include "fleet/route/incoming.h"
#include "fleet/route/request_cost.h"
#include "fleet/route/route_context.h"
#include "fleet/route/stream_back.h"
#include "fleet/route/tenants.h"

namespace octavo::fleet {

// Exists from the request's admission until its last attempt ends. All functions must run on the thread of
// `loop`, which is also the event loop of the client's connection.
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  // Must be called on the loop's thread. `share` is kept until the end of the request.
  static void start(const RouteContext& context, http::ClientLoop& loop,
                    std::shared_ptr<http::Exchange> exchange, TenantShare share, std::string tenant);
  ~Forwarding();
  Forwarding(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             TenantShare share, std::string tenant);

 private:
  using AttemptPointer = std::shared_ptr<Attempt>;
  struct Arrived {};
  struct Queued {
    std::uint64_t id = 0;  // id in the queue; 0: the request pauses before it enters the queue again
  };
  struct Prefilling {
    std::shared_ptr<const std::string> body;
    AttemptPointer attempt;
  };
  struct Sent {
    // two attempts while a hedge runs, no attempt during a backoff
    std::array<AttemptPointer, 2> attempts = {};
  };
  struct Answering {
    AttemptPointer attempt;
  };
  struct Over {};
  template <class State>
  bool is() const {
    return std::holds_alternative<State>(state_);
  }
  // Returns whether the client has received no part of a response yet.
  bool waits() const { return is<Sent>() && !back_.begun(); }

  struct History {
    int sent = 0;
    int tries = 0;     // attempts since the arrival or, after a broken stream, since the stream broke
    int losses = 0;    // attempts whose worker was lost before the client received a byte
    int refusals = 0;  // dispatches from the queue after which no worker accepted the request
    bool prefill_is_busy = false;  // a prefill worker has refused the request because it had no capacity
    std::vector<EndpointId> tried = {};
    // endpoints that failed, perhaps because of the request
    std::vector<std::shared_ptr<const Endpoint>> suspects = {};
    std::optional<http::Response> refusal = {};  // last refusal, sent to the client if no worker succeeds
  };

  // Before the first attempt:
  void begin(const std::shared_ptr<http::Exchange>& exchange);
  void on_read(const Result<>& memory, std::optional<http::Response> refusal);
  void admit();
  void find_model();
  void go();
  // In the queue (forwarding_queue.cc):
  void enter();
  void watch_deadline();
  void no_worker();
  void too_late();
  void leave();
  void wait_for_room();
  void wait_again();
  void leave_queue(FlowOutcome outcome);
  void refuse_waiting(FlowOutcome outcome);
  // Prefill at a separate worker (forwarding_prefill.cc):
  std::shared_ptr<const std::string> prefill_request();
  void prefill(std::shared_ptr<const std::string> body);
  std::expected<Choice, Refusal> choose_prefill();  // forwarding_nearness.cc
  void on_prefilled(Attempt& attempt, const Result<>& result);
  void suspect(const Attempt& attempt, const Result<>& result, int status);
  void spill(const std::string& reason);
  void decode(const std::optional<std::string>& params, std::int64_t cached = 0);
  // The worker of the request's session (forwarding_session.cc):
  std::string session_key(const std::string& model) const;
  bool follow_session();
  std::shared_ptr<const Endpoint> target_of_move(const Member* member);
  void send_after_move(bool moved, const std::shared_ptr<const Endpoint>& to);
  void send_to(const std::string& worker);
  void learn_session(const std::shared_ptr<const Endpoint>& worker);
  void note_session(const Attempt& attempt);
  // SGLang's KV transfer, with the request at two workers at once (forwarding_bootstrap.cc):
  bool is_bootstrapped() const;
  void begin_halves();
  bool send_prefill_half();
  void on_prefill_half(Attempt& attempt, const Result<>& result);

  AttemptPointer send();
  bool send_again();
  ChoiceOptions choice_options(Role part) const;
  AttemptPointer open(Choice choice, std::shared_ptr<const std::string> body, int timeout_ms);
  int blind_wait() const;
  void hedge();
  std::vector<AttemptPointer> under_way() const;
  void settle(Attempt& attempt, Outcome outcome);
  void drop_attempts(Outcome outcome);

  void on_body(Attempt& attempt, std::string_view piece);
  void on_end(Attempt& attempt, const Result<>& result);
  bool may_be_elsewhere(const Attempt& attempt) const;
  void look_elsewhere(Attempt& attempt);
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

  // The response to the client (forwarding_answer.cc):
  http::Response for_client(const Attempt& attempt, http::Response answer) const;
  std::string_view created(std::string_view answer) const;
  void note_usage(Attempt& attempt, std::string_view bytes) const;
  void check_usage(const Attempt& attempt) const;
  void start_stream(Attempt& attempt);
  void send_back(Attempt& attempt, std::string_view piece);
  void answer(http::Response response);
  void refuse(int status, const std::string& message, std::string_view param = {});
  void refuse_for_now(int status, const std::string& message);
  void break_off();
  void refuse_late();
  void finish();
  void client_disconnected();
  void end(int status);
  void read_unread_cost(Attempt& attempt, bool complete);

  const RouteContext context_;
  Balancer& balancer_;
  http::ClientLoop& loop_;
  const TenantShare share_;
  Incoming in_;
  StreamBack back_;
  RequestCost cost_;
  const std::shared_ptr<Bill> bill_;
  const RequestTrace trace_;
  std::variant<Arrived, Queued, Prefilling, Sent, Answering, Over> state_;
  History history_;
  std::shared_ptr<const std::string> body_;  // body for decode workers; null: the client's body
  // body_ without the bootstrap fields of SGLang's KV transfer; null: the client's body
  std::shared_ptr<const std::string> client_body_;
  // the current attempt's request to a prefill worker, with SGLang's KV transfer; otherwise null
  AttemptPointer prefill_half_;
  // each attempt sends the request to a prefill and a decode worker (forwarding_bootstrap.cc)
  bool in_halves_ = false;
  // Name of the worker that must serve the request, because it stores stored_id, or because a prefill worker
  // near it was chosen. "": any worker.
  std::string owner_;
  std::function<void()> cancel_move_ = {};  // empty: the request moves no session
  // random bits to reuse, so that the next choice of a decode worker is the same
  std::optional<std::uint64_t> draw_ = {};
  bool admitted_;
  // number of prompt tokens that the prefill worker had cached; nullopt: the decode worker computes the
  // prompt
  std::optional<std::int64_t> prefill_cached_ = {};
};

}  // namespace octavo::fleet
