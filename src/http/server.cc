#include "http/server.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "http/async_client.h"
#include "http/connection.h"
#include "http/event_loop.h"
#include "http/server_loop.h"
#include "http/url.h"

namespace octavo::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Socket = Connection::Socket;
using Protocol = Socket::protocol_type;
using Acceptor = asio::basic_socket_acceptor<Protocol>;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

// Time to finish open TCP handshakes before a server leaves a shared port.
constexpr std::chrono::milliseconds kHandshakesEnd{500};

// Makes a listening socket drop the first packet (SYN) of new connections. Clients repeat the packet after
// a second (RFC 6298), and by then another server on the port receives it. Without this, closing the socket
// would reset handshakes in progress.
void drop_new_handshakes(Acceptor& acceptor) {
  constexpr std::uint32_t kFlags = 13, kSyn = 0x02, kWhole = 0xffffffff;  // offsets and bits of a TCP header
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags),
                         BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
                         BPF_STMT(BPF_RET | BPF_K, kWhole)};
  const sock_fprog filter{.len = std::size(steps), .filter = steps};
  if (::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0)
    log_warning("connections that begin now may be reset: SO_ATTACH_FILTER: {}", std::strerror(errno));
}

// Pending operations share the state, because a client's loops may outlive the server.
struct Server::State : std::enable_shared_from_this<State> {
  std::shared_ptr<const ServerContext> context;
  // empty if the server runs on a client's loops
  std::vector<std::shared_ptr<EventLoop>> own_loops;
  std::vector<std::shared_ptr<ServerLoop>> loops;
  std::optional<Acceptor> acceptor;  // runs on the first loop
  std::optional<asio::steady_timer> accept_pause, drain_pause;
  std::uint16_t port = 0;
  std::size_t next_loop = 0;
  // this server has created the file of the Unix socket
  bool owns_path = false;
  bool draining = false;
  bool stopped = false;
  std::atomic<bool> accepting = true;

  static Result<std::shared_ptr<State>> start(ServerOptions options, Handler handler,
                                              std::span<const std::shared_ptr<EventLoop>> event_loops);
  Result<> listen();
  Result<> listen_on_path();
  error_code listen_at(const Protocol::endpoint& endpoint);
  void accept();
  void take_waiting();
  void take(Socket socket, const std::shared_ptr<ServerLoop>& loop);
  void stop_accepting();
  void close_acceptor();
  std::size_t connections() const;
};

Result<> Server::State::listen() {
  const ServerOptions& options = context->options;
  error_code error;
  tcp::resolver resolver(loops.front()->io());
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty())
    return field_failure("host", ErrorCode::io, "cannot resolve {}: {}", options.host, error.message());
  if (error = listen_at(found.begin()->endpoint()); error)
    return field_failure("port", ErrorCode::io, "cannot listen on {}: {}",
                         host_and_port(options.host, options.port), error.message());
  tcp::endpoint bound;
  const Protocol::endpoint local = acceptor->local_endpoint();
  std::memcpy(bound.data(), local.data(), std::min(local.size(), bound.capacity()));
  port = bound.port();
  return {};
}

// Replaces the file of a stale Unix socket, but not of one that has a server.
Result<> Server::State::listen_on_path() {
  const std::string& path = context->options.uds;
  error_code error;
  const auto wrong = [&](std::string_view why) {
    return field_failure("uds", ErrorCode::io, "cannot listen on {}: {}", path, why);
  };
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return wrong("the path is too long");
  const asio::local::stream_protocol::endpoint endpoint(path);
  std::error_code missing;
  if (std::filesystem::is_socket(path, missing)) {
    asio::local::stream_protocol::socket probe(loops.front()->io());
    probe.connect(endpoint, error);
    if (!error) return wrong("another server listens on this socket");
    ::unlink(path.c_str());
  }
  if (error = listen_at(endpoint); error) return wrong(error.message());
  owns_path = true;
  return {};
}

error_code Server::State::listen_at(const Protocol::endpoint& endpoint) {
  error_code error;
  acceptor.emplace(loops.front()->io());
  if (acceptor->open(endpoint.protocol(), error); !error)
    acceptor->set_option(Acceptor::reuse_address(true), error);
  if (!error && context->options.reuse_port) acceptor->set_option(ReusePort(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  return error;
}

std::size_t Server::State::connections() const {
  std::size_t count = 0;
  for (const auto& loop : loops) count += loop->size();
  return count;
}

void Server::State::accept() {
  const auto loop = loops[next_loop++ % loops.size()];
  acceptor->async_accept(
      loop->io(), [this, self = shared_from_this(), loop](const error_code& error, Socket socket) {
        // A connection that arrives while the acceptor closes is still served.
        if (!error) take(std::move(socket), loop);
        if (error == asio::error::operation_aborted || !acceptor->is_open()) return;
        if (!error) return accept();
        // The most likely cause is that no file descriptor is free, so it tries again later.
        log_warning("cannot accept a connection: {}", error.message());
        accept_pause->expires_after(std::chrono::milliseconds(100));
        accept_pause->async_wait([this, self](const error_code& stopped_now) {
          if (!stopped_now && acceptor->is_open()) accept();
        });
      });
}

// Accepts all pending connections, because closing the socket would reset them, even if another server
// listens on the port.
void Server::State::take_waiting() {
  error_code error;
  acceptor->cancel(error);
  acceptor->non_blocking(true, error);
  while (!error) {
    const auto loop = loops[next_loop++ % loops.size()];
    Socket socket(loop->io());
    acceptor->accept(socket, error);
    if (!error) take(std::move(socket), loop);
  }
}

void Server::State::take(Socket socket, const std::shared_ptr<ServerLoop>& loop) {
  const bool busy = connections() >= context->options.connections_max;
  loop->expect();
  asio::post(loop->io(), [loop, shared = context, busy, taken = std::move(socket)]() mutable {
    const auto connection = std::make_shared<Connection>(std::move(taken), loop, shared);
    if (!loop->add(connection)) return;
    busy ? connection->refuse_busy() : connection->start();
    if (loop->stops_idle()) connection->stop_when_idle();
  });
}

Result<std::shared_ptr<Server::State>> Server::State::start(
    ServerOptions options, Handler handler, std::span<const std::shared_ptr<EventLoop>> event_loops) {
  auto state = std::make_shared<State>();
  auto bodies = std::make_shared<BodyBudget>(options.bodies_bytes_max);
  auto unread = std::make_shared<BodyBudget>(options.bodies_bytes_max / 2);
  std::shared_ptr<ServerTls> tls;
  if (options.tls.enabled()) {
    TRY(tls, ServerTls::load(options.tls));
  } else if (!options.tls.keyfile.empty() || !options.tls.ca_certs.empty()) {
    return invalid("ssl-certfile", "must be given with ssl-keyfile and ssl-ca-certs");
  }
  state->context = std::make_shared<const ServerContext>(ServerContext{.options = std::move(options),
                                                                       .handler = std::move(handler),
                                                                       .bodies = std::move(bodies),
                                                                       .unread = std::move(unread),
                                                                       .tls = std::move(tls)});
  for (const auto& loop : event_loops)
    state->loops.push_back(std::make_shared<ServerLoop>(state->context, loop));
  TRY_VOID(state->context->options.uds.empty() ? state->listen() : state->listen_on_path());
  state->accept_pause.emplace(state->loops.front()->io());
  state->drain_pause.emplace(state->loops.front()->io());
  for (const auto& loop : state->loops) loop->start();
  asio::post(state->loops.front()->io(), [state] { state->accept(); });
  return state;
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler) {
  CHECK(options.threads >= 1, "a server needs at least one thread, got {}", options.threads);
  std::vector<std::shared_ptr<EventLoop>> loops;
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.threads); ++i)
    loops.push_back(std::make_shared<EventLoop>(i));
  TRY(auto state, State::start(std::move(options), std::move(handler), loops));
  for (const auto& loop : loops) loop->start();
  state->own_loops = std::move(loops);
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler, AsyncClient& client) {
  TRY(auto state, State::start(std::move(options), std::move(handler), client.event_loops()));
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::shared_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() { stop(0); }

std::uint16_t Server::port() const { return state_->port; }

std::string Server::address() const {
  const ServerOptions& options = state_->context->options;
  if (!options.uds.empty()) return "unix:" + options.uds;
  return fmt::format("{}://{}", options.tls.enabled() ? "https" : "http",
                     host_and_port(options.host, state_->port));
}

std::size_t Server::connections() const { return state_->connections(); }

bool Server::drain(int ms) {
  if (!std::exchange(state_->draining, true)) state_->stop_accepting();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  const auto busy = [this] { return state_->accepting || connections() > 0; };
  while (busy() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return !busy();
}

void Server::stop(int grace_ms) {
  if (std::exchange(state_->stopped, true)) return;
  drain(grace_ms);
  asio::post(state_->loops.front()->io(), [state = state_] { state->close_acceptor(); });
  for (const auto& loop : state_->loops) loop->close_all();
  for (const auto& loop : state_->own_loops) loop->join();
  if (state_->owns_path) ::unlink(state_->context->options.uds.c_str());
}

void Server::State::stop_accepting() {
  asio::post(loops.front()->io(), [this, self = shared_from_this()] {
    if (!context->options.reuse_port) return close_acceptor();
    drop_new_handshakes(*acceptor);
    drain_pause->expires_after(kHandshakesEnd);
    drain_pause->async_wait([this, self](const error_code& stopped_now) {
      if (stopped_now) return;
      take_waiting();
      close_acceptor();
    });
  });
  for (const auto& loop : loops) loop->stop_idle();
}

void Server::State::close_acceptor() {
  error_code ignored;
  acceptor->close(ignored);
  accept_pause->cancel();
  drain_pause->cancel();
  accepting = false;
}

}  // namespace octavo::http
