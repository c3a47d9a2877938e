#include "http/local_exchange.h"

#include <utility>

namespace octavo::http {

LocalExchange::LocalExchange(Request request, Answered answered)
    : Exchange(std::move(request)), answered_(std::move(answered)) {}

LocalExchange::~LocalExchange() {
  if (answered_) answered_({.status = 500, .body = R"({"error": {"message": "the request was dropped"}})"});
}

void LocalExchange::close() {
  std::vector<std::function<void(CloseReason)>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (!answered_) return;
    answered_ = nullptr;
    closed_ = true;
    callbacks.swap(on_close_);
  }
  for (const auto& callback : callbacks) callback(CloseReason::client_disconnected);
}

void LocalExchange::respond(Response response) {
  Answered answered;
  {
    const std::lock_guard lock(mutex_);
    answered = std::exchange(answered_, nullptr);
    on_close_.clear();
  }
  if (answered) answered(std::move(response));
}

void LocalExchange::start_stream(Response response) {
  const std::lock_guard lock(mutex_);
  stream_ = std::move(response);
}

bool LocalExchange::write(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  stream_.body += piece;
  return answered_ != nullptr;
}

void LocalExchange::finish() {
  Response whole;
  {
    const std::lock_guard lock(mutex_);
    whole = std::move(stream_);
  }
  respond(std::move(whole));
}

void LocalExchange::on_close(std::function<void(CloseReason)> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      if (answered_) on_close_.push_back(std::move(callback));
      return;
    }
  }
  callback(CloseReason::client_disconnected);
}

}  // namespace octavo::http
