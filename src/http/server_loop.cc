#include "http/server_loop.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <vector>

#include "base/clock.h"
#include "http/connection.h"

namespace octavo::http {
namespace {

// With this interval, a connection exceeds its time limit by at most about a quarter.
std::chrono::milliseconds sweep_interval(const ServerOptions& o) {
  const int shortest = std::min({o.header_ms_max, o.body_ms_max, o.idle_ms_max, o.write_ms_max});
  return std::chrono::milliseconds(std::clamp(shortest / 4, 5, 1000));
}

}  // namespace

ServerLoop::ServerLoop(std::shared_ptr<const ServerContext> context, std::shared_ptr<EventLoop> loop)
    : context_(std::move(context)), loop_(std::move(loop)) {}

void ServerLoop::start() {
  boost::asio::post(io(), [self = shared_from_this()] { self->arm_sweep(); });
}

bool ServerLoop::add(std::shared_ptr<Connection> connection) {
  if (!ending_) {
    Connection* key = connection.get();
    connections_.emplace(key, std::move(connection));
    count_ = connections_.size();
  }
  --expected_;
  return !ending_;
}

void ServerLoop::remove(Connection* connection) {
  connections_.erase(connection);
  count_ = connections_.size();
}

void ServerLoop::arm_sweep() {
  if (ending_) return;
  sweep_timer_.expires_after(sweep_interval(context_->options));
  sweep_timer_.async_wait([this, self = shared_from_this()](const boost::system::error_code& error) {
    if (error || ending_) return;
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    const std::int64_t now = now_us();
    for (const auto& connection : all) connection->sweep(now);
    arm_sweep();
  });
}

void ServerLoop::stop_idle() {
  boost::asio::post(io(), [this, self = shared_from_this()] {
    stops_idle_ = true;
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->stop_when_idle();
  });
}

void ServerLoop::close_all() {
  loop_->run([this] {
    ending_ = true;
    sweep_timer_.cancel();
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->close(CloseReason::server_stopping);
  });
}

}  // namespace octavo::http
