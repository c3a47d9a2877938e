// One turn of the model in a session (session.h). A Turn is a request to /v1/responses within this process.
// The session reads the turn's events while they are written.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "http/sse.h"

namespace octavo::mcp {

struct TurnEvents {
  std::function<void(boost::json::object)> event;
  std::function<void()> ended;
  // called instead of `event` and `ended` if the request fails at once
  std::function<void(http::Response)> refused;
};

class Turn final : public http::Exchange {
 public:
  // `client` receives the session's events. The turn waits while `client` does not read.
  Turn(http::Request request, std::shared_ptr<http::Exchange> client, TurnEvents events)
      : Exchange(std::move(request)), client_(std::move(client)), events_(std::move(events)) {}
  ~Turn() override;

  // Cancels the generation. Any thread may call it.
  void close();

  std::size_t loop_number() const override { return 0; }
  void respond(http::Response response) override;
  void start_stream(http::Response) override {}
  bool write(std::string_view piece) override;
  bool wait_writable(std::function<void()> resume) override {
    return client_->wait_writable(std::move(resume));
  }
  void finish() override;
  std::size_t unsent_bytes() const override { return client_->unsent_bytes(); }
  void cut() override { close(); }
  void on_close(std::function<void(http::CloseReason)> callback) override;

 private:
  // Returns the callbacks at the first call and empty ones later, because a turn ends only once.
  TurnEvents take_end();

  const std::shared_ptr<http::Exchange> client_;
  http::SseReader reader_;  // reads the events; only the writing thread uses it
  std::mutex mutex_;        // guards all members below
  TurnEvents events_;
  bool over_ = false;
  bool closed_ = false;
  std::vector<std::function<void(http::CloseReason)>> on_close_;
};

}  // namespace octavo::mcp
