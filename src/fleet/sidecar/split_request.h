// SplitRequest is one client request in the sidecar. It makes the connector's calls to the two engines: the
// prefill request and the decode request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fleet/relay/event_cutter.h"
#include "fleet/relay/request_trace.h"
#include "fleet/sidecar/sidecar_options.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

enum class Look : std::uint8_t;  // result of reading an engine's load

// Exists until its last call ends. Must be used on the thread of its loop.
class SplitRequest : public std::enable_shared_from_this<SplitRequest> {
 public:
  using Then = std::function<void(const Result<http::Response>& reply)>;
  using Otherwise = std::function<void(const std::shared_ptr<SplitRequest>& split)>;

  // If the local engine does all the work, `prefiller` is nullopt. Otherwise the caller must have decoded
  // the body (Content-Encoding). `draw` has random bits.
  SplitRequest(const SidecarOptions& options, http::ClientLoop& loop,
               std::shared_ptr<http::Exchange> exchange, std::optional<http::Address> prefiller,
               std::uint64_t draw);
  ~SplitRequest() { trace_.end(status_); }

  // Must be called first. Ends the running calls if the client disconnects.
  void watch_client();

  const SidecarOptions& options() const { return options_; }
  const std::string& path() const { return exchange_->request().path; }
  const std::string& body() const { return exchange_->request().body; }
  const http::Address& prefiller() const { return *prefiller_; }
  std::uint64_t draw() const { return draw_; }

  // Sends the body to the prefill engine. Retries after a lost connection or a retryable status, as the
  // options allow. If `to_its_end` is set, the call continues after the client disconnects. Otherwise, the
  // call also ends if the engine sends no bytes and is idle, or reports no load for too long.
  void prefill(std::string body, bool to_its_end, Then then, http::Headers more = {});
  // Sends the body to the prefill engine, concurrently with decode(). A failure is only logged. The call
  // continues after the client disconnects, because the decode engine would otherwise wait for blocks that
  // never arrive.
  void prefill_meanwhile(std::string body, http::Headers more = {});
  // Sends a GET to a different port of the prefill engine.
  void call_prefiller(int port, std::string target, Then then);

  // Sends the request to the local engine, and the response to the client. If `cached_tokens` is set, it
  // replaces the number of cached tokens in the usage.
  void decode(std::string body, std::optional<std::int64_t> cached_tokens = {});
  // Sends the request to the local engine. If the response ends with finish_reason "cache_threshold" before
  // its first token, calls `otherwise` instead of forwarding the response.
  void decode_if_cached(std::string body, Otherwise otherwise);
  void decode_alone();

  void answer(http::Response response);
  void refuse(int status, std::string_view message);

 private:
  http::CallRequest call_request(const http::Address& address, std::shared_ptr<const std::string> body) const;
  std::weak_ptr<http::Call> gather(http::CallRequest request, Then then);
  struct Prefill {
    std::shared_ptr<const std::string> body;
    http::Headers more = {};
    bool to_its_end = false;
    Then then = {};
    int attempt = 0;
    std::weak_ptr<http::Call> call = {};
    RequestTrace::Call span = {};
    std::int64_t sent_us = 0;
    // start of the time without running requests, from the engine's metrics; 0: the engine is busy
    std::int64_t idle_since_us = 0;
    int unreachable = 0;
  };
  void prefill(const std::shared_ptr<Prefill>& prefill_call);
  void watch(const std::shared_ptr<Prefill>& prefill_call, int attempt);
  void judge(const std::shared_ptr<Prefill>& prefill_call, Look look);
  void give_up(const std::shared_ptr<Prefill>& prefill_call, std::string_view reason, bool may_retry);
  void prefill_ended(const std::shared_ptr<Prefill>& prefill_call, const Result<http::Response>& reply);
  void decode(std::shared_ptr<const std::string> body);
  void on_head(http::Response head);
  void on_body(std::string_view piece);
  void hold(std::string_view piece);
  void on_end(const Result<>& result);
  void pass_on(const std::string& bytes);
  void client_disconnected();

  const SidecarOptions& options_;
  http::ClientLoop& loop_;
  std::shared_ptr<http::Exchange> exchange_;
  const std::optional<http::Address> prefiller_;
  const std::uint64_t draw_;
  http::Headers headers_;  // for both engines
  std::weak_ptr<http::Call> call_;
  const RequestTrace trace_;
  RequestTrace::Call decode_span_;
  int status_ = 0;  // status of the response to the client; 0: no response yet
  bool over_ = false;

  http::Response response_;
  EventCutter events_;
  std::optional<std::int64_t> cached_tokens_;
  // called if the decode engine has not cached enough; empty as soon as the response has content
  Otherwise otherwise_;
  std::string held_;     // bytes of the stream that are held back
  bool event_stream_ = false;
  bool streaming_ = false;
};

}  // namespace octavo::fleet
