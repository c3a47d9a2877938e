// One connection of the server. Only this module uses it. All socket operations run on the connection's
// event loop. Any thread may call respond, start_stream, write, finish, on_close and abandon: they append
// to outgoing_ under a mutex, and the loop sends it. An idle connection has no read buffer. It waits until
// the socket is readable, and reads into the loop's scratch buffer.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/answer_head.h"
#include "http/exchange.h"
#include "http/growing_body.h"
#include "http/server.h"
#include "http/server_loop.h"
#include "http/server_tls.h"
#include "http/write_deadline.h"

namespace octavo::http {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  Connection(Socket socket, std::shared_ptr<ServerLoop> loop, std::shared_ptr<const ServerContext> context);
  ~Connection();

  // Call the functions from here on only on the loop's thread.
  void start();
  void refuse_busy();
  // If a deadline has passed, closes the connection or responds with an error.
  void sweep(std::int64_t now);
  void stop_when_idle();
  void close(CloseReason reason);

  const ServerOptions& options() const { return context_->options; }
  const std::shared_ptr<BodyBudget>& unread_budget() const { return context_->unread; }
  std::size_t loop_number() const { return loop_->loop().number(); }

  // Any thread may call the functions from here on (see Exchange). serial: identifies the request. Calls for
  // a finished request do nothing.
  void respond(std::uint64_t serial, Response response);
  void start_stream(std::uint64_t serial, Response response);
  bool write(std::uint64_t serial, std::string_view piece);
  bool wait_writable(std::uint64_t serial, std::function<void()> resume);
  void finish(std::uint64_t serial);
  std::size_t unsent_bytes() const;
  void cut(std::uint64_t serial);
  void on_close(std::uint64_t serial, std::function<void(CloseReason)> callback);
  void abandon(std::uint64_t serial);
  bool client_left() const;  // whether the connection has closed because the client disconnected

 private:
  enum class Phase : std::uint8_t { idle, header, body, answering, lingering, closed };
  enum class AnswerState : std::uint8_t { none, streaming, complete };
  using Parser = boost::beast::http::request_parser<GrowingBody>;

  struct Incoming {
    bool waits = false;            // whether the connection waits, without a read buffer, until the socket is
                                   // readable
    std::int64_t deadline_us = 0;  // 0: no deadline
    std::string unread;
    std::unique_ptr<Parser> parser;
    Request request;  // the body stays empty until it is complete
    BodyShare body_share;
    std::size_t lingered_bytes = 0;
  };
  struct Sending {
    bool active = false;
    WriteDeadline deadline;
    std::string bytes;
    std::size_t sent = 0;
  };

  void enter(Phase phase, int timeout_ms);
  void wait_readable();
  void on_readable();
  bool take_in(std::span<const char> received);
  void parse();
  bool accept_header();
  bool read_head();
  bool hold_body();
  void dispatch();
  void refuse(int status, const std::string& message);
  void refuse(Response response);
  std::uint64_t begin_answer();
  void linger();
  void send_last_record();

  bool may_answer(std::uint64_t serial, AnswerState state) const;
  std::size_t unsent() const { return outgoing_.size() + sending_bytes_; }
  void append_piece(std::string_view piece);
  void request_flush();
  void flush();
  void write_some();
  void answer_sent();

  Socket socket_;
  std::shared_ptr<ServerLoop> loop_;
  std::shared_ptr<const ServerContext> context_;

  // Only the loop's thread uses the members from here on.
  Phase phase_ = Phase::idle;
  std::unique_ptr<TlsSession> tls_;  // null: no TLS
  bool stopping_ = false;
  bool fresh_ = true;  // true until the first request arrives
  Incoming in_;
  Sending sending_;

  // constant from the start of the handler until the response is complete
  AnswerForm form_;

  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t serial_ = 0;
  AnswerState answer_ = AnswerState::none;
  bool close_after_answer_ = false;
  std::string outgoing_;
  std::size_t sending_bytes_ = 0;
  bool flush_posted_ = false;
  std::optional<CloseReason> closed_;
  std::function<void(CloseReason)> on_close_;
  std::function<void()> on_writable_;
};

}  // namespace octavo::http
