#include "http/connection.h"

#include <fmt/format.h>

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "base/clock.h"
#include "http/empty_buffers.h"
#include "http/peer_socket.h"
#include "http/target.h"

namespace octavo::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

constexpr int kLingerMs = 1000;
// how long a new connection may wait for its first request while the server stops
constexpr int kFirstRequestMs = 3000;
constexpr std::size_t kLingerBytesMax = 16 << 20;

int refusal_status(const error_code& error) {
  if (error == beast_http::error::header_limit) return 431;
  if (error == beast_http::error::body_limit) return 413;
  return error == beast_http::error::bad_version ? 505 : 400;
}

// Returns "" for a Unix socket.
std::string address_of(const asio::generic::stream_protocol::endpoint& peer) {
  const bool v4 = peer.protocol().family() == AF_INET, v6 = peer.protocol().family() == AF_INET6;
  if (!v4 && !v6) return "";
  asio::ip::tcp::endpoint address;
  std::memcpy(address.data(), peer.data(), std::min(peer.size(), address.capacity()));
  return address.address().to_string();
}

Headers copied(const beast_http::fields& fields) {
  Headers headers;
  for (const auto& field : fields) headers.add(std::string(field.name_string()), std::string(field.value()));
  return headers;
}

// Returns true if the header has obsolete line folding (RFC 9112, section 5.2), which programs interpret
// differently.
bool has_folded_line(std::string_view header) {
  return header.find("\r\n ") != std::string_view::npos || header.find("\r\n\t") != std::string_view::npos;
}

// Returns whether the text is only a host and a port. Rejects user info, paths and lists, which programs
// might interpret differently.
bool is_host(std::string_view text) {
  return !text.empty() && text.find_first_of("@/\\?#, \t\"<>") == std::string_view::npos;
}

}  // namespace

Connection::Connection(Socket socket, std::shared_ptr<ServerLoop> loop,
                       std::shared_ptr<const ServerContext> context)
    : socket_(std::move(socket)), loop_(std::move(loop)), context_(std::move(context)) {}
Connection::~Connection() = default;

void Connection::start() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (context_->tls) tls_ = context_->tls->session();
  enter(Phase::idle, tls_ ? context_->options.header_ms_max : context_->options.idle_ms_max);
  wait_readable();
}

void Connection::refuse_busy() {
  start();
  refuse(503, "too many connections: retry later");
}

void Connection::enter(Phase phase, int timeout_ms) {
  phase_ = phase;
  in_.deadline_us = timeout_ms > 0 ? now_us() + std::int64_t{timeout_ms} * 1000 : 0;
}

void Connection::sweep(std::int64_t now) {
  if (sending_.deadline.is_reached(now) &&
      !sending_.deadline.extend(now, unacknowledged_bytes(socket_.native_handle())))
    return close(CloseReason::too_slow);
  if (in_.deadline_us == 0 || now <= in_.deadline_us) return;
  if (phase_ == Phase::header || phase_ == Phase::body)
    return refuse(408, "the request took too long to arrive");
  close(CloseReason::client_disconnected);
}

void Connection::stop_when_idle() {
  stopping_ = true;
  // A request that has begun to arrive still gets a response. A new connection gets time for its first
  // request.
  error_code ignored;
  if (phase_ != Phase::idle || socket_.available(ignored) > 0) return;
  if (fresh_) return enter(Phase::idle, kFirstRequestMs);
  close(CloseReason::server_stopping);
}

void Connection::close(CloseReason reason) {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  in_.body_share = {};
  error_code ignored;
  socket_.close(ignored);
  std::function<void(CloseReason)> callback;
  std::function<void()> resume;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) closed_ = reason;
    reason = *closed_;
    callback.swap(on_close_);
    resume.swap(on_writable_);
    std::string().swap(outgoing_);
  }
  if (callback) callback(reason);
  if (resume) resume();
  loop_->remove(this);
}

void Connection::wait_readable() {
  if (in_.waits || phase_ == Phase::closed) return;
  in_.waits = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->in_.waits = false;
    if (error) return self->close(CloseReason::client_disconnected);
    self->on_readable();
  });
}

void Connection::on_readable() {
  if (phase_ == Phase::closed) return;
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(loop_->loop().scratch()), error);
  if (error == asio::error::would_block) return wait_readable();
  // End of the client's stream: a client that closes only its sending side also counts as disconnected.
  if (error) return close(CloseReason::client_disconnected);
  if (phase_ == Phase::lingering) {
    in_.lingered_bytes += count;
    if (in_.lingered_bytes > kLingerBytesMax) return close(CloseReason::client_disconnected);
    return wait_readable();
  }
  try {
    if (!take_in({loop_->loop().scratch().data(), count})) return;
    if (phase_ != Phase::answering) return parse();
  } catch (const std::bad_alloc&) {
    return close(CloseReason::out_of_memory);
  }
  // Reads more only while `unread` is below the limit. Later pipelined requests stay in the kernel.
  if (in_.unread.size() < context_->options.header_bytes_max) wait_readable();
}

// Appends received bytes to in_.unread. Returns false if there is nothing new to parse.
bool Connection::take_in(std::span<const char> received) {
  if (!tls_) {
    in_.unread.append(received.data(), received.size());
    return true;
  }
  const std::size_t before = in_.unread.size();
  const bool was_done = tls_->handshake_done();
  if (!tls_->open(received, in_.unread)) {
    if (tls_->got_plain_http()) {
      tls_.reset();  // the client can read only a response without TLS
      refuse(400, "the request has no TLS, but this port needs it: use https:// instead of http://");
      return false;
    }
    send_last_record();
    close(CloseReason::client_disconnected);
    return false;
  }
  if (!was_done && tls_->handshake_done()) enter(Phase::idle, context_->options.idle_ms_max);
  if (tls_->has_pending()) {
    const std::lock_guard lock(mutex_);
    request_flush();
  }
  if (in_.unread.size() > before) return true;
  wait_readable();
  return false;
}

void Connection::parse() {
  if (phase_ == Phase::idle) {
    while (in_.unread.starts_with("\r\n")) in_.unread.erase(0, 2);
    if (in_.unread.empty()) return wait_readable();
    form_ = {};
    in_.parser = std::make_unique<Parser>();
    in_.parser->header_limit(context_->options.header_bytes_max);
    in_.parser->body_limit(context_->options.body_bytes_max);
    enter(Phase::header, context_->options.header_ms_max);
  }
  for (;;) {
    error_code error;
    const std::size_t taken = in_.parser->put(asio::buffer(in_.unread), error);
    const bool folded =
        phase_ == Phase::header && has_folded_line(std::string_view(in_.unread).substr(0, taken));
    in_.unread.erase(0, taken);
    if (folded) return refuse(400, "a header field over several lines is not allowed");
    if (error && error != beast_http::error::need_more)
      return refuse(refusal_status(error),
                    fmt::format("malformed or oversized request: {}", error.message()));
    if (phase_ == Phase::header && in_.parser->is_header_done() && !accept_header()) return;
    if (phase_ == Phase::body && !hold_body()) return;
    if (in_.parser->is_done()) return dispatch();
    if (error || in_.unread.empty()) break;
  }
  release_if_large(in_.unread);
  wait_readable();
}

bool Connection::accept_header() {
  const auto& message = in_.parser->get();
  const ServerOptions& options = context_->options;
  const auto refused = [&](int status, const std::string& text) {
    refuse(status, text);
    return false;
  };
  const auto fields = static_cast<std::size_t>(std::distance(message.begin(), message.end()));
  if (fields > options.headers_max)
    return refused(
        431, fmt::format("a request may have at most {} header fields, got {}", options.headers_max, fields));
  if (message.version() != 10 && message.version() != 11)
    return refused(505, "only HTTP/1.0 and HTTP/1.1 are supported");
  if (message.version() == 11 && message.count(beast_http::field::host) != 1)
    return refused(400, "exactly one Host header is required");
  const auto host = message.find(beast_http::field::host);
  if (host != message.end() && !is_host({host->value().data(), host->value().size()}))
    return refused(400, "the Host header must be a name or an address, with or without a port");
  // Rejects transfer codings other than chunked, because the end of the body would be ambiguous.
  const auto coding = message.find(beast_http::field::transfer_encoding);
  if (coding != message.end() &&
      (message.version() == 10 ||
       !equal_ignoring_case(std::string_view(coding->value().data(), coding->value().size()), "chunked")))
    return refused(501, "Transfer-Encoding must be chunked");
  if (message.count(beast_http::field::transfer_encoding) > 1 ||
      message.count(beast_http::field::content_length) > 1)
    return refused(400, "Transfer-Encoding and Content-Length may occur only once");

  if (!read_head() || !hold_body()) return false;
  if (options.admit && !in_.parser->is_done()) {
    if (auto response = options.admit(in_.request)) {
      refuse(*std::move(response));
      return false;
    }
  }
  in_.parser->eager(true);
  enter(Phase::body, options.body_ms_max);
  const auto expect = message.find(beast_http::field::expect);
  const bool waits = expect != message.end() && boost::beast::iequals(expect->value(), "100-continue");
  if (waits && message.version() == 11 && !in_.parser->is_done()) {
    const std::lock_guard lock(mutex_);
    outgoing_ += "HTTP/1.1 100 Continue\r\n\r\n";
    request_flush();
  }
  return true;
}

// Fills in_.request and form_.
bool Connection::read_head() {
  const auto& message = in_.parser->get();
  in_.request = {};
  in_.request.method = std::string(message.method_string());
  in_.request.headers = copied(message.base());
  error_code ignored;
  const auto peer = socket_.remote_endpoint(ignored);
  if (!ignored) in_.request.peer = address_of(peer);
  const bool cors = context_->options.cors.has_value();
  form_ = AnswerForm{.keep_alive = message.keep_alive() && !stopping_,
                     .head_only = in_.request.method == "HEAD",
                     .chunks = message.version() == 11,
                     .origin = cors ? std::string(in_.request.headers.find("Origin").value_or("")) : ""};
  Result<Target> target = parse_target(std::string_view(message.target().data(), message.target().size()));
  if (!target) {
    refuse(400, target.error().message);
    return false;
  }
  in_.request.path = std::move(target->path);
  in_.request.encoded_path = std::move(target->encoded);
  in_.request.query = std::move(target->query);
  return true;
}

// Counts received bytes, because a client can announce any length.
bool Connection::hold_body() {
  if (phase_ == Phase::header) in_.body_share = BodyShare(context_->bodies);
  if (in_.body_share.grow_to(in_.parser->get().body().size())) return true;
  refuse(503, "too many request bodies wait: retry later");
  return false;
}

void Connection::dispatch() {
  fresh_ = false;
  in_.request.body = std::move(in_.parser->get().body());
  in_.parser.reset();
  release_if_large(in_.unread);
  const std::uint64_t serial = begin_answer();
  wait_readable();
  auto exchange = std::make_shared<Exchange>(std::exchange(in_.request, {}),
                                             std::exchange(in_.body_share, {}), shared_from_this(), serial);
  const auto& cors = context_->options.cors;
  if (const auto preflight = cors ? preflight_answer(exchange->request(), *cors) : std::nullopt)
    return exchange->respond(*preflight);
  context_->handler(std::move(exchange));
}

// Starts the response. Only the caller may write it: later calls for this request are ignored.
std::uint64_t Connection::begin_answer() {
  enter(Phase::answering, 0);
  const std::lock_guard lock(mutex_);
  answer_ = AnswerState::none;
  close_after_answer_ = !form_.keep_alive;
  return ++serial_;
}

void Connection::refuse(int status, const std::string& message) {
  const auto& make = context_->options.refusal;
  refuse(make ? make(status, message)
              : Response{.status = status, .content_type = "text/plain", .body = message + "\n"});
}

void Connection::refuse(Response response) {
  in_.parser.reset();
  in_.request = {};
  in_.body_share = {};
  form_.keep_alive = false;
  respond(begin_answer(), std::move(response));
}

// Reads and drops input before closing. Otherwise the close would reset the connection, and the client
// could lose the response.
void Connection::linger() {
  if (tls_) {
    tls_->close();
    send_last_record();
  }
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  std::string().swap(in_.unread);
  enter(Phase::lingering, kLingerMs);
  wait_readable();
}

// Sends the TLS closing message if the socket accepts it at once.
void Connection::send_last_record() {
  std::string record;
  tls_->seal(record);
  error_code ignored;
  if (!record.empty()) socket_.write_some(asio::buffer(record), ignored);
}

}  // namespace octavo::http
