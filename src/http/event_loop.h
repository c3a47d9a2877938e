// A thread that serves its share of the connections. Private to this room.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <thread>
#include <unordered_map>

#include "http/body_budget.h"
#include "http/server.h"
#include "http/server_tls.h"

namespace octavo::http {

class Connection;

// What every connection of a server shares.
struct ServerContext {
  ServerOptions options;
  Handler handler;
  std::shared_ptr<BodyBudget> bodies;
  std::shared_ptr<ServerTls> tls{};  // null: plain HTTP
};

class EventLoop : public std::enable_shared_from_this<EventLoop> {
 public:
  explicit EventLoop(std::shared_ptr<const ServerContext> context);
  ~EventLoop();

  boost::asio::io_context& io() { return io_; }
  std::array<char, 65536>& scratch() { return scratch_; }

  void start();
  void expect() { ++expected_; }  // from any thread: a connection is on its way to add
  bool add(std::shared_ptr<Connection> connection);  // an expected one; false: the loop is ending
  void remove(Connection* connection);
  std::size_t size() const { return count_ + expected_; }

  void stop_idle();  // from any thread: close connections as they become idle
  bool stops_idle() const { return stops_idle_; }
  void close_all();  // from any thread: close every connection now and let the thread end
  void join();

 private:
  void arm_sweep();

  std::shared_ptr<const ServerContext> context_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  boost::asio::steady_timer sweep_timer_{io_};
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::atomic<std::size_t> count_ = 0, expected_ = 0;
  bool stops_idle_ = false;
  bool ending_ = false;
  std::array<char, 65536> scratch_{};
  std::thread thread_;
};

}  // namespace octavo::http
