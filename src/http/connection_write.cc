// Writes responses: any thread writes bytes, and the event loop of the connection sends them.
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <iterator>
#include <new>
#include <utility>

#include "base/clock.h"
#include "http/connection.h"
#include "http/empty_buffers.h"

namespace octavo::http {

namespace asio = boost::asio;
using boost::system::error_code;

bool Connection::may_answer(std::uint64_t serial, AnswerState state) const {
  return serial == serial_ && answer_ == state && !closed_;
}

void Connection::respond(std::uint64_t serial, Response response) {
  const std::lock_guard lock(mutex_);
  if (!may_answer(serial, AnswerState::none)) return;
  outgoing_ += answer_head(response, response.body.size(), form_, context_->options.cors);
  if (!form_.head_only) outgoing_ += response.body;
  answer_ = AnswerState::complete;
  request_flush();
}

void Connection::start_stream(std::uint64_t serial, Response response) {
  const std::lock_guard lock(mutex_);
  if (!may_answer(serial, AnswerState::none)) return;
  if (!form_.chunks) close_after_answer_ = true;
  AnswerForm form = form_;
  form.keep_alive = form_.keep_alive && form_.chunks;
  outgoing_ += answer_head(response, std::nullopt, form, context_->options.cors);
  answer_ = AnswerState::streaming;
  append_piece(response.body);
  request_flush();
}

bool Connection::write(std::uint64_t serial, std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (!may_answer(serial, AnswerState::streaming)) return false;
  if (unsent() > context_->options.stream_buffer_bytes_max) {
    closed_ = CloseReason::too_slow;
    std::string().swap(outgoing_);
    asio::post(loop_->io(), [self = shared_from_this()] { self->close(CloseReason::too_slow); });
    return false;
  }
  append_piece(piece);
  request_flush();
  return true;
}

std::size_t Connection::unsent_bytes() const {
  const std::lock_guard lock(mutex_);
  return unsent();
}

bool Connection::wait_writable(std::uint64_t serial, std::function<void()> resume) {
  const std::lock_guard lock(mutex_);
  if (!may_answer(serial, AnswerState::streaming) ||
      unsent() <= context_->options.stream_buffer_bytes_max / 2)
    return false;
  on_writable_ = std::move(resume);
  return true;
}

void Connection::finish(std::uint64_t serial) {
  const std::lock_guard lock(mutex_);
  if (!may_answer(serial, AnswerState::streaming)) return;
  if (form_.chunks && !form_.head_only) outgoing_ += "0\r\n\r\n";
  answer_ = AnswerState::complete;
  request_flush();
}

void Connection::on_close(std::uint64_t serial, std::function<void(CloseReason)> callback) {
  std::optional<CloseReason> reason;
  {
    const std::lock_guard lock(mutex_);
    if (serial != serial_ || answer_ == AnswerState::complete) return;
    reason = closed_;
    if (!reason) on_close_ = std::move(callback);
  }
  if (reason) callback(*reason);
}

void Connection::cut(std::uint64_t serial) {
  const std::lock_guard lock(mutex_);
  if (serial != serial_ || answer_ == AnswerState::complete || closed_)
    return;  // the connection may have closed in the meantime
  asio::post(loop_->io(), [self = shared_from_this()] { self->close(CloseReason::too_slow); });
}

void Connection::abandon(std::uint64_t serial) {
  respond(serial, {.status = 500, .content_type = "text/plain", .body = "the request was not answered\n"});
  const std::lock_guard lock(mutex_);
  if (!may_answer(serial, AnswerState::streaming)) return;
  asio::post(loop_->io(), [self = shared_from_this()] { self->close(CloseReason::server_stopping); });
}

bool Connection::client_left() const {
  const std::lock_guard lock(mutex_);
  return closed_ == CloseReason::client_disconnected;
}

void Connection::append_piece(std::string_view piece) {
  if (piece.empty() || form_.head_only) return;
  if (form_.chunks) fmt::format_to(std::back_inserter(outgoing_), "{:x}\r\n", piece.size());
  outgoing_ += piece;
  if (form_.chunks) outgoing_ += "\r\n";
}

// mutex_ must be locked.
void Connection::request_flush() {
  if (flush_posted_) return;
  flush_posted_ = true;
  asio::post(loop_->io(), [self = shared_from_this()] { self->flush(); });
}

void Connection::flush() {
  bool complete = false;
  std::function<void()> resume;
  {
    const std::lock_guard lock(mutex_);
    flush_posted_ = false;
    if (sending_.active || phase_ == Phase::closed) return;
    complete = outgoing_.empty() && answer_ == AnswerState::complete;
    sending_.bytes.swap(outgoing_);
    sending_bytes_ = sending_.bytes.size();
    if (unsent() <= context_->options.stream_buffer_bytes_max / 2) resume.swap(on_writable_);
  }
  if (resume) resume();
  if (tls_) tls_->seal(sending_.bytes);
  if (complete && sending_.bytes.empty() && phase_ == Phase::answering) return answer_sent();
  if (sending_.bytes.empty()) return;
  sending_.active = true;
  sending_.sent = 0;
  write_some();
}

void Connection::write_some() {
  sending_.deadline.start(now_us(), std::int64_t{context_->options.write_ms_max} * 1000);
  const auto rest = asio::buffer(sending_.bytes) + sending_.sent;
  socket_.async_write_some(rest, [self = shared_from_this()](const error_code& error, std::size_t count) {
    if (error) return self->close(CloseReason::client_disconnected);
    self->sending_.sent += count;
    if (self->sending_.sent < self->sending_.bytes.size()) return self->write_some();
    self->sending_.active = false;
    self->sending_.deadline.stop();
    self->sending_.bytes.clear();
    release_if_large(self->sending_.bytes);
    self->flush();
  });
}

void Connection::answer_sent() {
  // destroyed without the lock, because it may own the exchange
  std::function<void(CloseReason)> finished;
  bool closing = false;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(on_close_);
    ++serial_;
    answer_ = AnswerState::none;
    closing = close_after_answer_ || stopping_;
  }
  if (closing) return linger();
  enter(Phase::idle, context_->options.idle_ms_max);
  parse();
}

}  // namespace octavo::http
