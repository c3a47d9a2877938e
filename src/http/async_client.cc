#include "http/async_client.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/quoted_text.h"
#include "http/event_loop.h"
#include "http/exchange.h"
#include "http/peer_socket.h"
#include "http/response_reader.h"
#include "http/tls.h"
#include "http/url.h"

namespace octavo::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kPauseMs = 2;
constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kBuffersMax = 128;
constexpr int kSweepMs = 1000;

class Loop;

struct Link {
  tcp::socket socket;
  std::unique_ptr<TlsSession> tls = {};  // null: no TLS

  // Returns whether the connection seems to be open and has no unread bytes. Some servers send 408 before
  // they close an idle connection; this must not become the response to the next request.
  bool is_idle() {
    char byte = 0;
    error_code error;
    socket.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, error);
    return error == asio::error::would_block;
  }
};

class OneCall : public Call, public std::enable_shared_from_this<OneCall> {
 public:
  OneCall(Loop& loop, CallRequest request, CallEvents events);

  void start();
  void cancel() override { close(); }
  void again() override;

 private:
  void begin();
  bool runs() const { return stage_ == Stage::running; }
  bool is_in(int phase) const { return runs() && phase == phase_; }
  void arm(int ms, std::string_view what, ErrorCode code);
  void connect();
  void send();
  void send_sealed(std::string plain);
  std::function<void(const error_code&, std::size_t)> written();
  void read();
  void on_bytes(std::span<const char> bytes);
  bool parse(std::string_view left);
  bool has_read_request();
  void on_peer_closed(std::string_view why, bool in_order, bool reset);
  bool deliver();
  void fail(ErrorCode code, std::string message);
  void end(const Result<>& result, bool keeps_connection);
  void stop();
  void close();

  Loop& loop_;
  CallRequest request_;
  CallEvents events_;
  std::string head_;
  Link link_;
  std::string sending_;  // encrypted bytes that are being sent (TLS only)
  std::optional<tcp::resolver> resolver_;  // only set for a host name
  asio::steady_timer deadline_;
  std::optional<asio::steady_timer> pause_;
  std::int64_t deadline_us_ = 0;
  std::optional<ResponseReader> response_;
  std::unique_ptr<char[]> received_;
  // bytes that are not parsed yet, because the parser needs them together with the next received bytes
  std::string unread_;
  bool writing_ = false;
  bool reused_ = false;     // an earlier call used the connection
  bool has_bytes_ = false;  // a byte of the response has arrived
  bool head_delivered_ = false;
  enum class Stage : std::uint8_t { running, ended, closed } stage_ = Stage::running;
  // Number of connects, sends and ends so far. A late handler of an earlier phase does nothing.
  int phase_ = 0;
};

class Loop : public ClientLoop {
 public:
  Loop(const AsyncClientOptions& options, std::shared_ptr<EventLoop> loop)
      : options_(options), loop_(std::move(loop)) {}

  void start() {
    sweep();
    loop_->start();
  }
  // Cancels all calls without callbacks, and rejects new ones.
  void end() {
    loop_->run([this] {
      ending_ = true;
      sweep_timer_.cancel();
      for (const auto& timer : std::exchange(timers_, {})) timer->cancel();
      for (const auto& call : std::vector(calls_.begin(), calls_.end())) call->cancel();
      idle_.clear();
    });
    loop_->join();
  }

  void post(std::function<void()> work) override {
    asio::post(io(), [this, work = std::move(work)] {
      if (!ending_) work();
    });
  }
  void after(int ms, std::function<void()> work) override {
    if (ending_) return;
    auto timer = std::make_shared<asio::steady_timer>(io(), std::chrono::milliseconds(ms));
    timers_.insert(timer);
    timer->async_wait([this, timer, work = std::move(work)](const error_code& error) {
      timers_.erase(timer);
      if (!error && !ending_) work();
    });
  }
  std::shared_ptr<Call> call(CallRequest request, CallEvents events) override {
    auto call = std::make_shared<OneCall>(*this, std::move(request), std::move(events));
    calls_.insert(call);
    ending_ ? call->cancel() : call->start();
    return call;
  }
  void closed(const std::shared_ptr<OneCall>& call) { calls_.erase(call); }

  // Buffers are reused, because allocating one for each call would be slow.
  std::unique_ptr<char[]> take_buffer() {
    if (buffers_.empty()) return std::make_unique_for_overwrite<char[]>(kReadBytes);
    auto buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
  }
  void return_buffer(std::unique_ptr<char[]> buffer) {
    if (buffer && buffers_.size() < kBuffersMax) buffers_.push_back(std::move(buffer));
  }

  asio::io_context& io() { return loop_->io(); }
  const AsyncClientOptions& options() const { return options_; }

  const std::shared_ptr<SSL_CTX>& tls_context() { return options_.tls ? options_.tls : system_tls_context(); }

  void keep(const CallRequest& request, Link link) {
    auto& kept = idle_[Peer(request)];
    if (kept.size() < options_.idle_connections_max) kept.push_back({std::move(link), now_us()});
  }
  // Returns an idle connection, or nullopt.
  std::optional<Link> take(const CallRequest& request) {
    auto& kept = idle_[Peer(request)];
    while (!kept.empty()) {
      Link link = std::move(kept.back().link);
      kept.pop_back();
      if (link.is_idle()) return link;
    }
    return std::nullopt;
  }

 private:
  struct Idle {
    Link link;
    std::int64_t since_us;
  };

  // Idle connections are reused only for the same address and the same TLS context.
  struct Peer {
    explicit Peer(const CallRequest& request) : address(request.address), tls(request.tls.get()) {}
    auto operator<=>(const Peer&) const = default;

    Address address;
    const SSL_CTX* tls;
  };

  void sweep() {
    const std::int64_t oldest = now_us() - std::int64_t{options_.idle_keep_ms} * 1000;
    for (auto& [address, kept] : idle_)
      while (!kept.empty() && kept.front().since_us < oldest) kept.pop_front();
    std::erase_if(idle_, [](const auto& entry) { return entry.second.empty(); });
    sweep_timer_.expires_after(std::chrono::milliseconds(kSweepMs));
    sweep_timer_.async_wait([this](const error_code& error) {
      if (!error && !ending_) sweep();
    });
  }

  AsyncClientOptions options_;
  std::shared_ptr<EventLoop> loop_;
  asio::steady_timer sweep_timer_{loop_->io()};
  std::unordered_set<std::shared_ptr<asio::steady_timer>> timers_;
  std::unordered_set<std::shared_ptr<OneCall>> calls_;  // calls that are not closed
  std::map<Peer, std::deque<Idle>> idle_;
  std::vector<std::unique_ptr<char[]>> buffers_;
  bool ending_ = false;
};

OneCall::OneCall(Loop& loop, CallRequest request, CallEvents events)
    : loop_(loop),
      request_(std::move(request)),
      events_(std::move(events)),
      link_{tcp::socket(loop.io())},
      deadline_(loop.io()) {}

void OneCall::start() {
  head_ = request_head(request_.method, request_.target, request_.address.text(), request_.headers,
                       request_.body.get());
  if (auto kept = loop_.take(request_)) link_ = *std::move(kept);
  begin();
}

void OneCall::again() {
  CHECK(request_.repeats && stage_ == Stage::ended, "again() needs a call that repeats and has ended");
  stage_ = Stage::running;
  has_bytes_ = head_delivered_ = false;
  unread_.clear();
  if (link_.socket.is_open() && !link_.is_idle()) link_ = {tcp::socket(loop_.io())};
  begin();
}

void OneCall::begin() {
  deadline_us_ = now_us() + std::int64_t{request_.timeout_ms} * 1000;
  reused_ = link_.socket.is_open();
  reused_ ? send() : connect();
}

void OneCall::arm(int ms, std::string_view what, ErrorCode code) {
  deadline_.expires_after(std::chrono::milliseconds(ms));
  deadline_.async_wait([self = shared_from_this(), what, code, phase = phase_](const error_code& error) {
    if (!error && self->is_in(phase)) self->fail(code, fmt::format("{}: timed out", what));
  });
}

void OneCall::connect() {
  ++phase_;
  reused_ = false;
  arm(std::min(request_.connect_ms, request_.timeout_ms), "cannot connect", ErrorCode::unavailable);
  const auto connected = [self = shared_from_this(), phase = phase_](const error_code& error,
                                                                     const tcp::endpoint&) {
    if (!self->is_in(phase)) return;
    if (error) return self->fail(ErrorCode::unavailable, fmt::format("cannot connect: {}", error.message()));
    error_code ignored;
    self->link_.socket.set_option(tcp::no_delay(true), ignored);
    self->link_.socket.non_blocking(true, ignored);
    notice_lost_peer(self->link_.socket.native_handle());
    if (self->request_.address.tls)
      self->link_.tls = TlsSession::of_client(
          self->request_.tls ? self->request_.tls : self->loop_.tls_context(), self->request_.address.host);
    self->send();
  };
  error_code not_numeric;
  const auto ip = asio::ip::make_address(request_.address.host, not_numeric);
  if (!not_numeric) {
    const std::array<tcp::endpoint, 1> one{tcp::endpoint(ip, request_.address.port)};
    return asio::async_connect(link_.socket, one, connected);
  }
  resolver_.emplace(loop_.io());
  resolver_->async_resolve(request_.address.host, std::to_string(request_.address.port),
                           [self = shared_from_this(), connected, phase = phase_](
                               const error_code& error, const tcp::resolver::results_type& found) {
                             if (!self->is_in(phase)) return;
                             if (error)
                               return self->fail(ErrorCode::unavailable,
                                                 fmt::format("cannot resolve {}: {}",
                                                             self->request_.address.host, error.message()));
                             asio::async_connect(self->link_.socket, found, connected);
                           });
}

// Sends and reads at the same time, because a peer that rejects a request may respond before it has read
// all of it.
void OneCall::send() {
  ++phase_;
  arm(static_cast<int>(std::max<std::int64_t>((deadline_us_ - now_us()) / 1000, 0)), "no answer",
      ErrorCode::io);
  response_.emplace(request_.method, loop_.options().header_bytes_max, boost::none);
  if (link_.tls) {
    send_sealed(request_.body ? head_ + *request_.body : head_);
  } else {
    const std::array<asio::const_buffer, 2> parts{
        asio::buffer(head_), request_.body ? asio::buffer(*request_.body) : asio::const_buffer()};
    writing_ = true;
    asio::async_write(link_.socket, parts, written());
  }
  read();
}

void OneCall::send_sealed(std::string plain) {
  link_.tls->seal(plain);
  sending_ = std::move(plain);
  writing_ = true;
  asio::async_write(link_.socket, asio::buffer(sending_), written());
}

// Ignores write errors, because the read gets the response or reports the cause.
std::function<void(const error_code&, std::size_t)> OneCall::written() {
  return [self = shared_from_this(), phase = phase_](const error_code& error, std::size_t) {
    if (!self->is_in(phase)) return;
    self->writing_ = static_cast<bool>(error);
    if (!error && self->link_.tls && self->link_.tls->has_pending()) self->send_sealed({});
  };
}

void OneCall::read() {
  if (head_delivered_ && events_.ready && !events_.ready()) {
    pause_.emplace(loop_.io(), std::chrono::milliseconds(kPauseMs));
    return pause_->async_wait([self = shared_from_this(), phase = phase_](const error_code&) {
      if (self->is_in(phase)) self->read();
    });
  }
  // Each call has a read buffer. With a shared buffer, a call would have to wait until its socket is
  // readable, which costs one more system call for each read.
  if (!received_) received_ = loop_.take_buffer();
  link_.socket.async_read_some(
      asio::buffer(received_.get(), kReadBytes),
      [self = shared_from_this(), phase = phase_](const error_code& error, std::size_t count) {
        if (!self->is_in(phase)) return;
        // With TLS, a closing message must come first, so the end of the socket alone is an error.
        const bool reset = error != asio::error::eof;
        if (error) return self->on_peer_closed(error.message(), !reset && !self->link_.tls, reset);
        self->on_bytes({self->received_.get(), count});
      });
}

void OneCall::on_bytes(std::span<const char> bytes) {
  bool open = true;
  std::string_view left(bytes.data(), bytes.size());
  if (link_.tls) {
    open = link_.tls->open(bytes, unread_);
    left = unread_;
  } else if (!unread_.empty()) {
    left = unread_.append(left);
  }
  has_bytes_ = has_bytes_ || !left.empty();
  if (!parse(left)) return;
  if (!open) return on_peer_closed(link_.tls->wrong(), link_.tls->ended(), false);
  if (link_.tls && link_.tls->has_pending() && !writing_) send_sealed({});
  read();
}

// Valid after the peer has ended the connection without a reset.
bool OneCall::has_read_request() { return !writing_ && has_reached_peer(link_.socket.native_handle()); }

// in_order: HTTP or TLS permits the end of the connection here. reset: the peer has reset the connection.
void OneCall::on_peer_closed(std::string_view why, bool in_order, bool reset) {
  // If the peer closed a reused connection before it read the request, the request can be sent again on a new
  // connection. If the peer has read the request, only the caller knows whether a second attempt is safe.
  if (reused_ && !has_bytes_ && (reset || !has_read_request())) {
    error_code ignored;
    link_.socket.close(ignored);
    return connect();
  }
  // a response without a length ends with the connection
  if (in_order && !response_->end_of_stream()) {
    if (deliver()) end({}, false);
    return;
  }
  fail(ErrorCode::io, fmt::format("{}: {}", has_bytes_ ? "the answer was cut short" : "no answer", why));
}

// Returns false if the call has ended.
bool OneCall::parse(std::string_view left) {
  if (const error_code wrong = response_->parse(left)) {
    fail(ErrorCode::io, fmt::format("malformed answer: {}", wrong.message()));
    return false;
  }
  unread_ = std::string(left);  // `left` may point into unread_
  if (!deliver()) return false;
  if (!response_->done()) return true;
  end({}, response_->keep_alive() && unread_.empty() && !writing_);
  return false;
}

// Returns false if a callback has cancelled the call.
bool OneCall::deliver() {
  if (!response_->has_head()) return true;
  if (!std::exchange(head_delivered_, true)) {
    events_.head(response_->head());
    if (!runs()) return false;
  }
  if (!response_->body().empty()) {
    events_.body(response_->body());
    response_->body().clear();
  }
  return runs();
}

void OneCall::fail(ErrorCode code, std::string message) {
  end(failure(code, "{}: {}", request_.address.text(), message), false);
}

void OneCall::end(const Result<>& result, bool keeps_connection) {
  if (request_.repeats) {
    stop();
    if (!keeps_connection) link_ = {tcp::socket(loop_.io())};
    return events_.end(result);
  }
  if (keeps_connection) loop_.keep(request_, std::move(link_));
  const auto end = events_.end;
  close();
  end(result);
}

void OneCall::stop() {
  stage_ = Stage::ended;
  ++phase_;
  loop_.return_buffer(std::move(received_));
  if (resolver_) resolver_->cancel();
  deadline_.cancel();
  if (pause_) pause_->cancel();
}

void OneCall::close() {
  if (stage_ == Stage::closed) return;
  stop();
  stage_ = Stage::closed;
  error_code ignored;
  link_.socket.close(ignored);
  loop_.closed(shared_from_this());
  // Destroys the callbacks later, not within this function, because they may own the object that called it.
  asio::post(loop_.io(), [events = std::move(events_)] {});
}

}  // namespace

std::string Address::text() const { return host_and_port(host, port); }

std::string Address::url() const { return (tls ? "https://" : "http://") + text(); }

Result<Address> parse_base_url(std::string_view text) {
  const auto url = parse_url(text);
  if (!url || !text.contains("://") || url->target != "/")
    return invalid("url", "must be http://host:port or https://host:port, got {}", quoted_text(text));
  return Address{url->host, url->port, url->tls};
}

struct AsyncClient::State {
  std::vector<std::shared_ptr<EventLoop>> event_loops;
  std::vector<std::unique_ptr<Loop>> loops;
  std::atomic<std::size_t> next = 0;
};

AsyncClient::AsyncClient(AsyncClientOptions options) : state_(std::make_unique<State>()) {
  CHECK(options.threads >= 1, "a client needs at least one thread, got {}", options.threads);
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.threads); ++i) {
    state_->event_loops.push_back(std::make_shared<EventLoop>(i, options.pause_ms));
    state_->loops.push_back(std::make_unique<Loop>(options, state_->event_loops.back()));
  }
  for (const auto& loop : state_->loops) loop->start();
}

AsyncClient::~AsyncClient() {
  for (const auto& loop : state_->loops) loop->end();
}

ClientLoop& AsyncClient::next_loop() { return *state_->loops[state_->next++ % state_->loops.size()]; }

ClientLoop& AsyncClient::loop_of(const Exchange& exchange) {
  CHECK(exchange.loop_number() < state_->loops.size(),
        "the exchange's server does not run on this client's loops");
  return *state_->loops[exchange.loop_number()];
}

std::span<const std::shared_ptr<EventLoop>> AsyncClient::event_loops() const { return state_->event_loops; }

}  // namespace octavo::http
