// One connection of the gRPC server. Only this module uses it. All functions except post() run on its event
// loop.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "grpc/session.h"
#include "http/event_loop.h"
#include "http/tls_session.h"

namespace octavo::grpc {

class Connection : public Host, public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // tls: null for no TLS. closed: called once.
  Connection(Socket socket, http::EventLoop& loop, std::unique_ptr<http::TlsSession> tls,
             std::function<void(Connection*)> closed);

  void start(const Methods& methods, std::size_t message_bytes_max);
  // rejects new calls, and closes after the last open call
  void shut_down();
  void close();
  std::size_t calls() const { return session_ ? session_->calls() : 0; }

  void post(std::function<void()> work) override;

 private:
  void wait_readable();
  void read();
  bool take_in(std::span<const char> received);
  void flush();
  bool write_some();

  Socket socket_;
  http::EventLoop& loop_;
  std::unique_ptr<http::TlsSession> tls_;
  std::function<void(Connection*)> on_closed_;
  // closes a connection that does not begin with HTTP/2's preface
  boost::asio::steady_timer silence_;
  std::unique_ptr<Session> session_;
  std::string sending_;
  std::size_t sent_ = 0;
  bool writing_ = false;
  // guards closed_; post() drops work if it is true
  std::mutex mutex_;
  bool closed_ = false;
};

}  // namespace octavo::grpc
