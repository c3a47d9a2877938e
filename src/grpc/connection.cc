#include "grpc/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <chrono>
#include <utility>

namespace octavo::grpc {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kSilenceMax{10};

}  // namespace

Connection::Connection(Socket socket, http::EventLoop& loop, std::unique_ptr<http::TlsSession> tls,
                       std::function<void(Connection*)> closed)
    : socket_(std::move(socket)),
      loop_(loop),
      tls_(std::move(tls)),
      on_closed_(std::move(closed)),
      silence_(loop.io()) {}

void Connection::start(const Methods& methods, std::size_t message_bytes_max) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  // TCP keepalive: closes the connection when the host of a gateway has disappeared.
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  session_ = std::make_unique<Session>(methods, message_bytes_max, weak_from_this());
  silence_.expires_after(kSilenceMax);
  silence_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->session_ && !self->session_->began()) self->close();
  });
  flush();
  wait_readable();
}

void Connection::shut_down() {
  session_->shut_down();
  flush();
}

void Connection::close() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
  }
  const auto self = shared_from_this();
  error_code ignored;
  socket_.close(ignored);
  silence_.cancel();
  session_.reset();
  on_closed_(this);
}

void Connection::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  asio::post(loop_.io(), [self = shared_from_this(), work = std::move(work)] {
    work();
    self->flush();
  });
}

void Connection::wait_readable() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    if (error) return self->close();
    self->read();
  });
}

void Connection::read() {
  if (!session_) return;
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(loop_.scratch()), error);
  if (error == asio::error::would_block) return wait_readable();
  if (error || !take_in({loop_.scratch().data(), count})) {
    flush();  // sends the reason for closing
    return close();
  }
  flush();
  if (session_) wait_readable();
}

bool Connection::take_in(std::span<const char> received) {
  if (!tls_) return session_->receive(received);
  std::string plain;
  return tls_->open(received, plain) && !tls_->ended() && session_->receive(plain);
}

// Sends until the socket accepts no more bytes.
void Connection::flush() {
  while (session_ && !writing_) {
    if (sent_ == sending_.size()) {
      sending_.clear();
      sent_ = 0;
      session_->send(sending_);
      if (tls_) tls_->seal(sending_);
      if (sending_.empty()) break;
    }
    if (!write_some()) return;
  }
  if (session_ && !writing_ && session_->over()) close();
}

// Returns false if the socket accepts no bytes now, or if the connection has closed.
bool Connection::write_some() {
  error_code error;
  sent_ += socket_.write_some(asio::buffer(sending_) + sent_, error);
  if (!error) return true;
  if (error != asio::error::would_block) {
    close();
    return false;
  }
  writing_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& failed) {
    self->writing_ = false;
    if (failed) return self->close();
    self->flush();
  });
  return false;
}

}  // namespace octavo::grpc
