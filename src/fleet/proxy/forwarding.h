// One request on its way through the router: to a replica, to another one when that fails before the client
// has seen a byte, and its answer back, streams piece by piece.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fleet/proxy/dispatcher.h"
#include "fleet/proxy/prompt_tokens.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

// Of an admitted request. Lives as long as something is under way for it; everything happens on its loop's
// thread.
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  // tokens: null where prompts stay text.
  static void start(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
                    std::shared_ptr<http::Exchange> exchange);
  ~Forwarding();
  Forwarding(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
             std::shared_ptr<http::Exchange> exchange);

 private:
  void begin();
  bool prefill();
  void on_prefilled(const Result<>& result);
  void attempt();
  http::CallRequest call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body) const;
  std::shared_ptr<const std::string> body() const;
  void on_head(http::Response head);
  void on_body(std::string_view piece);
  void on_end(Result<> result);
  void retry(std::string reason);
  void end_attempt(Outcome outcome);
  void answer(http::Response response);
  void client_gone();

  Dispatcher& dispatcher_;
  const PromptTokens* tokens_;
  http::ClientLoop& loop_;
  std::shared_ptr<http::Exchange> exchange_;
  http::Headers headers_;  // as they go to replicas
  RouteRequest request_;
  bool explain_ = false;
  std::int64_t arrived_us_;

  std::shared_ptr<const std::string> decode_body_;  // null: the client's
  int attempts_ = 0;
  std::vector<EndpointId> tried_;
  Choice choice_;
  std::weak_ptr<http::Call> call_;
  http::Response response_;  // gathered, until it is sent or streamed
  bool event_stream_ = false;
  bool streaming_ = false;  // the client has seen its head
  bool answered_ = false;   // the first byte of the answer is there
  bool over_ = false;
};

}  // namespace octavo::fleet
