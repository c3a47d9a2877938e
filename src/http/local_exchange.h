// A request that this process sends to its own handlers, without a connection.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "http/exchange.h"

namespace octavo::http {

// An exchange without a connection. If the handler answers with a stream, its pieces are collected into one
// response.
class LocalExchange final : public Exchange {
 public:
  using Answered = std::function<void(Response)>;

  // answered: called once, on any thread. If the handler drops the exchange, the status is 500.
  LocalExchange(Request request, Answered answered);
  ~LocalExchange() override;

  // Like a client that disconnects: calls the handler's on_close callback, and never calls `answered`.
  void close();

  std::size_t loop_number() const override { return 0; }
  void respond(Response response) override;
  void start_stream(Response response) override;
  bool write(std::string_view piece) override;
  bool wait_writable(std::function<void()>) override { return false; }
  void finish() override;
  std::size_t unsent_bytes() const override { return 0; }
  void cut() override { close(); }
  void on_close(std::function<void(CloseReason)> callback) override;

 private:
  std::mutex mutex_;   // guards the members below
  Answered answered_;  // empty after the response or close()
  bool closed_ = false;
  Response stream_;
  std::vector<std::function<void(CloseReason)>> on_close_;
};

}  // namespace octavo::http
