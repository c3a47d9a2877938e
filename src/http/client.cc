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
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "http/tls.h"
#include "http/url.h"

namespace octavo::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using Parser = beast_http::response_parser<beast_http::buffer_body>;

constexpr std::size_t kClientReadBytes = 16 << 10;

std::unexpected<Error> io_failure(std::string_view what) {
  const bool timed_out = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS;
  return failure(ErrorCode::io, "{}: {}", what, timed_out ? "timed out" : std::strerror(errno));
}

// Sets timeouts of a blocking socket. The send timeout also limits connect().
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
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) continue;
    set_timeouts(fd, options.timeout_ms);
    if (::connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    ::close(fd);
  }
  return field_failure("port", ErrorCode::io, "cannot connect to {}:{}: {}", options.host, options.port,
                       std::strerror(errno));
}

}  // namespace

struct Client::State {
  ClientOptions options;
  int fd = -1;
  std::optional<Tls> tls;
  std::string unread;
  std::unique_ptr<Parser> parser;

  ~State() {
    if (fd >= 0) ::close(fd);
  }
  Result<bool> receive();       // appends to `unread`; false at the end of the stream
  bool readable(int ms) const;  // false: nothing arrived within ms
  Result<> parse_header();
  Result<std::optional<std::string>> read(std::optional<int> at_most_ms);
};

Result<bool> Client::State::receive() {
  if (fd < 0) return failure(ErrorCode::io, "the connection is closed");
  if (options.deadline_us > 0) {
    const std::int64_t left_ms = (options.deadline_us - now_us()) / 1000;
    if (left_ms <= 0 || !readable(static_cast<int>(left_ms)))
      return failure(ErrorCode::io, "cannot receive: timed out");
  }
  std::array<char, kClientReadBytes> bytes;
  if (tls) {
    TRY(const std::size_t received, tls->receive(bytes));
    unread.append(bytes.data(), received);
    return received > 0;
  }
  ssize_t count = 0;
  do count = ::recv(fd, bytes.data(), bytes.size(), 0);
  while (count < 0 && errno == EINTR);
  if (count < 0) return io_failure("cannot receive");
  unread.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0;
}

bool Client::State::readable(int ms) const {
  if (fd < 0 || (tls && tls->pending())) return true;
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, ms) != 0;
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(ClientOptions options) {
  TRY(const int fd, connected_socket(options));
  auto state = std::make_unique<State>();
  state->fd = fd;
  if (options.tls) {
    TRY(state->tls, Tls::start(fd, options.host, options.ca_file));
  }
  state->options = std::move(options);
  return Client(std::move(state));
}

Result<> Client::send_raw(std::string_view bytes) {
  if (state_->tls) return state_->tls->send(bytes);
  while (!bytes.empty()) {
    const ssize_t count = ::send(state_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<std::string> Client::receive_raw() {
  if (state_->unread.empty()) TRY_VOID(state_->receive());
  return std::exchange(state_->unread, {});
}

void Client::shutdown_send() { ::shutdown(state_->fd, SHUT_WR); }

void Client::close() {
  if (state_->fd >= 0) ::close(std::exchange(state_->fd, -1));
}

Result<> Client::State::parse_header() {
  parser->body_limit(options.body_bytes_max);
  for (;;) {
    error_code error;
    unread.erase(0, parser->put(asio::buffer(unread), error));
    if (error && error != beast_http::error::need_more)
      return failure(ErrorCode::io, "malformed response: {}", error.message());
    if (parser->is_header_done() && parser->get().result_int() != 100) return {};
    if (parser->is_header_done()) parser = std::make_unique<Parser>();
    if (!unread.empty() && !error) continue;
    TRY(const bool more, receive());
    if (!more) return failure(ErrorCode::io, "the server closed the connection before a response");
  }
}

Result<Response> Client::open(std::string_view method, std::string_view target, std::string body,
                              Headers headers) {
  const ClientOptions& to = state_->options;
  std::string message =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, host_header(to.host, to.port, to.tls));
  for (const auto& [name, value] : headers) message += fmt::format("{}: {}\r\n", name, value);
  if (!body.empty() || method == "POST") message += fmt::format("Content-Length: {}\r\n", body.size());
  message += "\r\n";
  message += body;
  TRY_VOID(send_raw(message));

  state_->parser = std::make_unique<Parser>();
  state_->parser->skip(method == "HEAD");
  TRY_VOID(state_->parse_header());
  const auto& head = state_->parser->get();
  Response response;
  response.status = static_cast<int>(head.result_int());
  for (const auto& field : head)
    response.headers.add(std::string(field.name_string()), std::string(field.value()));
  response.content_type = std::string(response.headers.find("Content-Type").value_or(""));
  return response;
}

// Received bytes may not contain a piece: for example, only the end of a chunk, or the beginning of the next
// one.
Result<std::optional<std::string>> Client::State::read(std::optional<int> at_most_ms) {
  while (!parser->is_done()) {
    std::array<char, kClientReadBytes> piece;
    auto& body = parser->get().body();
    body.data = piece.data();
    body.size = piece.size();
    error_code error;
    unread.erase(0, parser->put(asio::buffer(unread), error));
    const std::size_t count = piece.size() - body.size;
    if (count > 0) return std::string(piece.data(), count);
    if (error && error != beast_http::error::need_more && error != beast_http::error::need_buffer)
      return failure(ErrorCode::io, "malformed response body: {}", error.message());
    if (!error && !unread.empty()) continue;
    if (parser->is_done()) break;
    if (at_most_ms && !readable(*at_most_ms)) return std::string();
    TRY(const bool more, receive());
    if (more) continue;
    parser->put_eof(error);
    if (error) return failure(ErrorCode::io, "the response was cut short: {}", error.message());
  }
  return std::nullopt;
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
