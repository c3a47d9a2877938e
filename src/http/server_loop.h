// The connections of a server on one event loop. Only this module uses it.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <unordered_map>

#include "http/body_budget.h"
#include "http/event_loop.h"
#include "http/server.h"
#include "http/server_tls.h"

namespace octavo::http {

class Connection;

struct ServerContext {
  ServerOptions options;
  Handler handler;
  std::shared_ptr<BodyBudget> bodies;
  std::shared_ptr<ServerTls> tls{};  // null: no TLS
};

class ServerLoop : public std::enable_shared_from_this<ServerLoop> {
 public:
  ServerLoop(std::shared_ptr<const ServerContext> context, std::shared_ptr<EventLoop> loop);

  EventLoop& loop() { return *loop_; }
  boost::asio::io_context& io() { return loop_->io(); }

  void start();
  void expect() { ++expected_; }  // announces an add(); any thread may call it
  // adds an announced connection; returns false if the loop is ending
  bool add(std::shared_ptr<Connection> connection);
  void remove(Connection* connection);
  std::size_t size() const { return count_ + expected_; }

  // closes connections when they are idle; any thread
  void stop_idle();
  bool stops_idle() const { return stops_idle_; }
  // Closes all connections and rejects new ones. Do not call it on the loop's thread.
  void close_all();

 private:
  void arm_sweep();

  std::shared_ptr<const ServerContext> context_;
  std::shared_ptr<EventLoop> loop_;
  boost::asio::steady_timer sweep_timer_{loop_->io()};
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::atomic<std::size_t> count_ = 0, expected_ = 0;
  bool stops_idle_ = false;
  bool ending_ = false;
};

}  // namespace octavo::http
