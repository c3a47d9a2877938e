// One request on its way through the router: to a replica, to another one when that fails before the client
// has seen a byte or where its answer broke off, and its answer back, streams piece by piece.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/proxy/dispatcher.h"
#include "fleet/proxy/prompt_tokens.h"
#include "fleet/proxy/resumable_stream.h"
#include "fleet/proxy/tenants.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

// Of an admitted request. Lives as long as something is under way for it; everything happens on the thread of
// its loop, which is the one that its client's connection is on.
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  // On the loop's thread. tokens: null where prompts stay text. share: kept until the request ends.
  static void start(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
                    std::shared_ptr<http::Exchange> exchange, TenantShare share);
  ~Forwarding();
  Forwarding(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
             std::shared_ptr<http::Exchange> exchange, TenantShare share);

 private:
  void begin();
  void show_own_key();
  bool prefill();
  void on_prefilled(const Result<>& result);
  void attempt();
  // A request that is with a replica. Its number tells events of one from those of another.
  struct Leg {
    int number = 0;
    Choice choice = {};
    std::weak_ptr<http::Call> call = {};
  };
  std::weak_ptr<http::Call> send(int number, const Endpoint& endpoint);
  void hedge();
  void hedge_answers(http::Response head);
  void hedge_wins();
  void hedge_ends(Outcome outcome);
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body) const;
  std::shared_ptr<const std::string> body() const;
  void send_back(std::string_view piece);
  void on_head(http::Response head);
  void on_body(std::string_view piece);
  void on_end(Result<> result);
  void on_broken(std::string reason);
  bool migrate();
  void retry(std::string reason);
  void end_attempt(Outcome outcome);
  void answer(http::Response response);
  void refuse(int status, const std::string& message);
  void finish();
  void client_gone();

  Dispatcher& dispatcher_;
  const PromptTokens* tokens_;
  http::ClientLoop& loop_;
  std::shared_ptr<http::Exchange> exchange_;
  const TenantShare share_;
  http::Headers headers_;  // as they go to replicas
  RouteRequest request_;
  bool explain_ = false;
  std::int64_t arrived_us_;

  std::shared_ptr<const std::string> body_;  // null: the client's
  std::optional<ResumableStream> resumable_;
  int migrations_ = 0;
  int attempts_ = 0;  // since the last one
  std::vector<EndpointId> tried_;
  Choice choice_;
  std::weak_ptr<http::Call> call_;
  int legs_ = 0;             // begun so far
  int leg_ = 0;              // the one that choice_ and call_ are of
  Leg hedge_;                // asked beside it; number 0: nobody is
  http::Response response_;  // gathered, until it is sent or streamed
  bool event_stream_ = false;
  bool headed_ = false;     // the leg's head is there
  bool streaming_ = false;  // the client has seen its head
  bool answered_ = false;   // the first byte of the answer is there
  bool over_ = false;
};

}  // namespace octavo::fleet
