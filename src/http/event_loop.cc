#include "http/event_loop.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <vector>

#include "base/clock.h"
#include "http/connection.h"

namespace octavo::http {
namespace {

// Often enough that no timeout is overrun by more than about a quarter.
std::chrono::milliseconds sweep_interval(const ServerOptions& o) {
  const int shortest = std::min({o.header_ms_max, o.body_ms_max, o.idle_ms_max, o.write_ms_max});
  return std::chrono::milliseconds(std::clamp(shortest / 4, 5, 1000));
}

}  // namespace

EventLoop::EventLoop(std::shared_ptr<const ServerContext> context) : context_(std::move(context)) {}
EventLoop::~EventLoop() { join(); }

void EventLoop::start() {
  arm_sweep();
  thread_ = std::thread([this] { io_.run(); });
}

void EventLoop::join() {
  if (thread_.joinable()) thread_.join();
}

bool EventLoop::add(std::shared_ptr<Connection> connection) {
  if (!ending_) {
    Connection* key = connection.get();
    connections_.emplace(key, std::move(connection));
    count_ = connections_.size();
  }
  --expected_;
  return !ending_;
}

void EventLoop::remove(Connection* connection) {
  connections_.erase(connection);
  count_ = connections_.size();
}

void EventLoop::arm_sweep() {
  sweep_timer_.expires_after(sweep_interval(context_->options));
  sweep_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || ending_) return;
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    const std::int64_t now = now_us();
    for (const auto& connection : all) connection->sweep(now);
    arm_sweep();
  });
}

void EventLoop::stop_idle() {
  boost::asio::post(io_, [this] {
    stops_idle_ = true;
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->stop_when_idle();
  });
}

void EventLoop::close_all() {
  boost::asio::post(io_, [this] {
    ending_ = true;
    sweep_timer_.cancel();
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->close(CloseReason::server_stopping);
    work_.reset();
  });
}

}  // namespace octavo::http
