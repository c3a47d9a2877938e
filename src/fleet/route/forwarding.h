// One request on its way through the router: to a worker, to another one when that fails before the client
// has seen a byte or where its answer broke off, and its answer back, streams piece by piece.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/route/resumable_stream.h"
#include "fleet/route/route_context.h"
#include "fleet/route/tenants.h"
#include "http/async_client.h"
#include "http/exchange.h"

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
  enum class Phase : std::uint8_t {
    queued,      // no worker has room
    prefilling,  // a prefill worker computes the prompt
    waiting,     // the client has seen nothing of an answer
    streaming,   // the client has seen its head
    over,
  };
  // The request at one worker.
  struct Attempt {
    int number = 0;  // of all attempts, so that late events find none; 0: not under way
    std::int64_t sent_us = 0;
    Choice choice = {};
    std::weak_ptr<http::Call> call = {};
    http::Response answer = {};  // what has come of it and was not sent on
    bool hedges = false;         // the second of two
    bool forgotten = false;      // see Trouble
  };

  // Before the first attempt.
  void begin();
  void read_headers();
  void find_model();
  void go();
  // The queue (forwarding_queue.cc).
  void enter();
  void wait_for_room();
  void wait_again();
  void leave_queue(FlowOutcome outcome);
  // The prompt at a prefill worker (forwarding_prefill.cc).
  bool prefill();
  void on_prefilled(Attempt& attempt, const Result<>& result);

  // Attempts.
  bool send();
  bool send_again();
  ChoiceOptions choice_options(Role part) const;
  Role answering_part() const;
  void open(Attempt& attempt, Choice choice, std::shared_ptr<const std::string> body, int timeout_ms);
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                 int timeout_ms) const;
  std::shared_ptr<const std::string> body() const;
  void hedge();
  Attempt* find(int number);
  int under_way() const;
  void settle(Attempt& attempt, Outcome outcome);
  void drop_attempts(Outcome outcome);

  // Events of attempts.
  void on_head(int number, http::Response head);
  void on_body(int number, std::string_view piece);
  void on_end(int number, const Result<>& result);
  void on_trouble(int number, Trouble trouble);
  void on_refused(Attempt& attempt);
  void on_lost(Attempt& attempt, const Error& error);
  bool lead(Attempt& attempt);
  void blame_suspects(int status);
  bool continues(const Attempt& attempt) const;
  void retry(const std::string& reason);
  void retry_later(const std::string& reason);
  void give_up(const std::string& reason);
  bool migrate();

  // The client's answer.
  http::Response for_client(const Attempt& attempt, http::Response answer) const;
  std::string_view response_of(std::string_view answer) const;
  void start_stream(Attempt& attempt);
  void send_back(Attempt& attempt, std::string_view piece);
  void answer(http::Response response);
  void refuse(int status, const std::string& message, std::string_view param = {});
  void break_off();
  void refuse_late();
  void finish();
  void client_gone();
  bool past_own_deadline() const;
  int left_ms() const;

  const RouteContext context_;
  Balancer& balancer_;
  http::ClientLoop& loop_;
  std::shared_ptr<http::Exchange> exchange_;
  const TenantShare share_;
  const std::int64_t arrived_us_;
  http::Headers headers_;  // as they go to workers
  RouteRequest request_;
  bool explain_ = false;
  std::string tenant_;        // "": none
  bool admitted_;             // counts in Admission
  std::uint64_t queued_ = 0;  // its id in the queue
  int refusals_ = 0;          // for lack of room, since the queue let it go first
  std::string owner_;         // name of the worker that has the stored response; "": none is known

  Phase phase_ = Phase::waiting;
  std::array<Attempt, 2> attempts_;  // two while a hedge is under way
  bool leading_ = false;             // the answer of the only attempt left has begun
  int numbers_ = 0;
  int tries_ = 0;   // since the request came or its stream broke
  int losses_ = 0;  // of attempts whose worker had the request, before the client has seen a byte
  std::vector<EndpointId> tried_;
  std::vector<std::shared_ptr<const Endpoint>> suspects_;  // whose failures the request may have caused
  std::optional<http::Response> refusal_;  // the last one, for the client if nobody does better

  std::shared_ptr<const std::string> body_;  // null: the client's
  bool prefilled_ = false;
  bool prefill_busy_ = false;  // a prefill worker has too much to do
  std::optional<ResumableStream> resumable_;
  int migrations_ = 0;
  bool event_stream_ = false;
};

}  // namespace octavo::fleet
