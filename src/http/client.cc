#include "http/client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "http/public_address.h"
#include "http/response_reader.h"
#include "http/tls.h"
#include "http/url.h"

namespace octavo::http {
namespace {

using boost::system::error_code;

constexpr std::size_t kClientReadBytes = 16 << 10;
constexpr std::uint32_t kClientHeaderBytesMax = 64 << 10;

std::unexpected<Error> io_failure(std::string_view what) {
  const bool timed_out = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS;
  return failure(ErrorCode::io, "{}: {}", what, timed_out ? "timed out" : std::strerror(errno));
}

// The send timeout also limits connect().
void set_timeouts(int fd, int timeout_ms) {
  const timeval wait{.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<int> connected_socket(const ClientOptions& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code =
          ::getaddrinfo(options.host.c_str(), std::to_string(options.port).c_str(), &hints, &found))
    return field_failure("host", ErrorCode::io, "cannot resolve {}: {}", options.host, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  bool tried = false;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (options.public_only && !is_public(*a->ai_addr)) continue;
    tried = true;
    const int fd = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) continue;
    set_timeouts(fd, options.timeout_ms);
    if (::connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    ::close(fd);
  }
  if (!tried) return field_failure("host", ErrorCode::unsupported, "{} has no public address", options.host);
  return field_failure("port", ErrorCode::io, "cannot connect to {}: {}",
                       host_and_port(options.host, options.port), std::strerror(errno));
}

}  // namespace

struct Client::State {
  ClientOptions options;
  int fd = -1;
  std::unique_ptr<TlsSession> tls;  // null: no TLS
  std::string unread;               // received and decrypted bytes that are not parsed yet
  std::optional<ResponseReader> response;

  ~State() {
    if (fd >= 0) ::close(fd);
  }
  Result<> start_tls();
  Result<> send(std::string_view bytes);  // the bytes are sent unchanged
  Result<> send_sealed(std::string_view plain);
  // appends to `unread`; returns false at the end of the stream
  Result<bool> receive();
  // returns false if nothing arrives within `ms` milliseconds, or if a signal interrupts the wait
  bool readable(int ms) const;
  Result<> parse();
  Result<std::optional<Response>> head(std::optional<int> at_most_ms);
  Result<std::optional<std::string>> read(std::optional<int> at_most_ms);
};

// If the certificate is not trusted, returns invalid_argument on "host", not io: a retry would not help.
Result<> Client::State::start_tls() {
  tls = TlsSession::of_client(options.tls_context ? options.tls_context : system_tls_context(), options.host);
  Result<> sent = send_sealed({});
  while (sent && !tls->handshake_done()) {
    const Result<bool> more = receive();
    if (more && *more) continue;
    if (!tls->trusted()) return invalid("host", "{}: {}", options.host, tls->wrong());
    return failure(ErrorCode::io, "cannot open a TLS connection to {}: {}", options.host,
                   more ? "the connection was closed" : more.error().message);
  }
  return sent;
}

Result<> Client::State::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (options.deadline_us > 0 && now_us() >= options.deadline_us)
      return failure(ErrorCode::io, "cannot send: timed out");
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<> Client::State::send_sealed(std::string_view plain) {
  std::string bytes(plain);
  tls->seal(bytes);
  return send(bytes);
}

Result<bool> Client::State::receive() {
  if (fd < 0) return failure(ErrorCode::io, "the connection is closed");
  if (options.deadline_us > 0) {
    const std::int64_t left_ms = (options.deadline_us - now_us()) / 1000;
    if (left_ms <= 0 || !readable(static_cast<int>(left_ms)))
      return failure(ErrorCode::io, "cannot receive: timed out");
  }
  std::array<char, kClientReadBytes> bytes;
  ssize_t count = 0;
  do count = ::recv(fd, bytes.data(), bytes.size(), 0);
  while (count < 0 && errno == EINTR);
  if (count < 0) return io_failure("cannot receive");
  const std::span<const char> received(bytes.data(), static_cast<std::size_t>(count));
  if (!tls) {
    unread.append(received.data(), received.size());
    return !received.empty();
  }
  const std::size_t before = unread.size();
  const bool open = !received.empty() && tls->open(received, unread);
  if (tls->has_pending()) TRY_VOID(send_sealed({}));
  if (open || unread.size() > before) return true;
  if (tls->ended()) return false;
  return failure(ErrorCode::io, "cannot receive: {}",
                 received.empty() ? "the connection was closed" : tls->wrong());
}

bool Client::State::readable(int ms) const {
  if (fd < 0) return true;
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&polled, 1, ms);
  return ready > 0 || (ready < 0 && errno != EINTR);
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(ClientOptions options) {
  TRY(const int fd, connected_socket(options));
  auto state = std::make_unique<State>();
  state->fd = fd;
  state->options = std::move(options);
  if (state->options.tls) TRY_VOID(state->start_tls());
  return Client(std::move(state));
}

Result<> Client::send_raw(std::string_view bytes) {
  return state_->tls ? state_->send_sealed(bytes) : state_->send(bytes);
}

Result<std::string> Client::receive_raw() {
  while (state_->unread.empty()) {
    TRY(const bool more, state_->receive());
    if (!more) break;
  }
  return std::exchange(state_->unread, {});
}

void Client::shutdown_send() { ::shutdown(state_->fd, SHUT_WR); }

void Client::close() {
  if (state_->fd >= 0) ::close(std::exchange(state_->fd, -1));
}

Result<> Client::State::parse() {
  std::string_view left = unread;
  const error_code wrong = response->parse(left);
  unread.erase(0, unread.size() - left.size());
  if (wrong) return failure(ErrorCode::io, "malformed response: {}", wrong.message());
  return {};
}

Result<> Client::send(std::string_view method, std::string_view target, std::string body, Headers headers) {
  State& s = *state_;
  const ClientOptions& to = s.options;
  const bool has_body = !body.empty() || method == "POST";
  TRY_VOID(send_raw(request_head(method, target, host_header(to.host, to.port, to.tls), headers,
                                 has_body ? &body : nullptr) +
                    body));
  s.response.emplace(method, kClientHeaderBytesMax, to.body_bytes_max);
  return {};
}

Result<std::optional<Response>> Client::State::head(std::optional<int> at_most_ms) {
  for (;;) {
    TRY_VOID(parse());
    if (response->has_head()) return response->head();
    if (at_most_ms && !readable(*at_most_ms)) return std::nullopt;
    TRY(const bool more, receive());
    if (!more) return failure(ErrorCode::io, "the server closed the connection before a response");
  }
}

Result<Response> Client::open(std::string_view method, std::string_view target, std::string body,
                              Headers headers) {
  TRY_VOID(send(method, target, std::move(body), std::move(headers)));
  TRY(std::optional<Response> head, state_->head(std::nullopt));
  return *std::move(head);
}

Result<std::optional<Response>> Client::head_for(int ms) { return state_->head(ms); }

// Reads until one piece of the body is complete, because received bytes may contain only a part of a chunk
// header.
Result<std::optional<std::string>> Client::State::read(std::optional<int> at_most_ms) {
  for (;;) {
    TRY_VOID(parse());
    if (!response->body().empty()) return std::exchange(response->body(), {});
    if (response->done()) return std::nullopt;
    if (at_most_ms && !readable(*at_most_ms)) return std::string();
    TRY(const bool more, receive());
    if (more) continue;
    if (const error_code wrong = response->end_of_stream())
      return failure(ErrorCode::io, "the response was cut short: {}", wrong.message());
  }
}

Result<std::optional<std::string>> Client::read() { return state_->read(std::nullopt); }

Result<std::optional<std::string>> Client::read_for(int ms) { return state_->read(ms); }

Result<Response> Client::request(std::string_view method, std::string_view target, std::string body,
                                 Headers headers) {
  TRY(Response response, open(method, target, std::move(body), std::move(headers)));
  for (;;) {
    TRY(std::optional<std::string> piece, read());
    if (!piece) return response;
    response.body += *piece;
  }
}

}  // namespace octavo::http
