#include "serve/mcp/turn.h"

#include <utility>

#include "base/exact_json.h"

namespace octavo::mcp {

Turn::~Turn() {
  if (const TurnEvents end = take_end(); end.refused)
    end.refused({.status = 500, .body = R"({"error": {"message": "the request was dropped"}})"});
}

TurnEvents Turn::take_end() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(over_, true)) return {};
  on_close_.clear();
  return std::exchange(events_, {});
}

void Turn::close() {
  std::vector<std::function<void(http::CloseReason)>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, true)) return;
    closed_ = true;
    events_ = {};
    callbacks.swap(on_close_);
  }
  for (const auto& callback : callbacks) callback(http::CloseReason::client_disconnected);
}

void Turn::respond(http::Response response) {
  if (const TurnEvents end = take_end(); end.refused) end.refused(std::move(response));
}

bool Turn::write(std::string_view piece) {
  std::function<void(boost::json::object)> receive;
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    receive = events_.event;
  }
  for (const std::string& data : reader_.push(piece)) {
    boost::system::error_code broken;
    boost::json::value event = parse_exact_json(data, broken);
    if (!broken && event.is_object()) receive(std::move(event.get_object()));
  }
  return true;
}

void Turn::finish() {
  if (const TurnEvents end = take_end(); end.ended) end.ended();
}

void Turn::on_close(std::function<void(http::CloseReason)> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      if (!over_) on_close_.push_back(std::move(callback));
      return;
    }
  }
  callback(http::CloseReason::client_disconnected);
}

}  // namespace octavo::mcp
