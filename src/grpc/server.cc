#include "grpc/server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "grpc/connection.h"
#include "http/event_loop.h"
#include "http/url.h"

namespace octavo::grpc {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

struct Server::State {
  struct Loop {
    explicit Loop(std::size_t number) : loop(number) {}
    http::EventLoop loop;
    std::map<Connection*, std::shared_ptr<Connection>> connections;
  };

  State(ServerOptions o, Methods m) : options(std::move(o)), methods(std::move(m)) {
    for (int i = 0; i < options.threads; ++i)
      loops.push_back(std::make_unique<Loop>(static_cast<std::size_t>(i)));
  }

  Result<> listen();
  void accept();
  void take(Loop& loop, tcp::socket socket);
  std::size_t connections();

  const ServerOptions options;
  const Methods methods;
  std::vector<std::unique_ptr<Loop>> loops;
  std::optional<tcp::acceptor> acceptor;  // runs on the first loop, as `pause` does
  std::optional<asio::steady_timer> pause;
  std::uint16_t port = 0;
  std::size_t next = 0;
  bool stopped = false;
};

Result<> Server::State::listen() {
  error_code error;
  tcp::resolver resolver(loops.front()->loop.io());
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (!error && !found.empty()) {
    const tcp::endpoint at = found.begin()->endpoint();
    acceptor.emplace(loops.front()->loop.io());
    acceptor->open(at.protocol(), error);
    if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor->bind(at, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  }
  if (error || !acceptor)
    return field_failure(options.field, ErrorCode::io, "cannot listen on {}: {}",
                         http::host_and_port(options.host, options.port), error.message());
  port = acceptor->local_endpoint().port();
  pause.emplace(loops.front()->loop.io());
  return {};
}

void Server::State::accept() {
  Loop& loop = *loops[next++ % loops.size()];
  acceptor->async_accept(loop.loop.io(), [this, &loop](const error_code& error, tcp::socket socket) {
    if (!error) {
      asio::post(loop.loop.io(),
                 [this, &loop, taken = std::move(socket)]() mutable { take(loop, std::move(taken)); });
    }
    if (!acceptor->is_open()) return;
    if (!error) return accept();
    // The most likely cause is that no file descriptor is free.
    log_warning("cannot accept a connection: {}", error.message());
    pause->expires_after(std::chrono::milliseconds(100));
    pause->async_wait([this](const error_code& stopping) {
      if (!stopping && acceptor->is_open()) accept();
    });
  });
}

void Server::State::take(Loop& loop, tcp::socket socket) {
  auto tls = options.tls ? options.tls->session() : nullptr;
  const auto connection =
      std::make_shared<Connection>(std::move(socket), loop.loop, std::move(tls),
                                   [&loop](Connection* closed) { loop.connections.erase(closed); });
  loop.connections.emplace(connection.get(), connection);
  connection->start(methods, options.message_bytes_max);
}

std::size_t Server::State::connections() {
  std::size_t count = 0;
  for (const auto& loop : loops) loop->loop.run([&] { count += loop->connections.size(); });
  return count;
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Methods methods) {
  auto state = std::make_unique<State>(std::move(options), std::move(methods));
  TRY_VOID(state->listen());
  asio::post(state->loops.front()->loop.io(), [state = state.get()] { state->accept(); });
  for (const auto& loop : state->loops) loop->loop.start();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() { stop(0); }

std::uint16_t Server::port() const { return state_->port; }

void Server::stop(int grace_ms) {
  if (std::exchange(state_->stopped, true)) return;
  const auto on_all = [&](void (Connection::*what)()) {
    for (const auto& loop : state_->loops) {
      loop->loop.run([&] {
        // Iterates over a copy, because a connection that closes removes itself from loop->connections.
        const auto connections = loop->connections;
        for (const auto& [key, connection] : connections) ((*connection).*what)();
      });
    }
  };
  state_->loops.front()->loop.run([&] {
    error_code ignored;
    state_->acceptor->close(ignored);
    state_->pause->cancel();
  });
  on_all(&Connection::shut_down);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(grace_ms);
  while (std::chrono::steady_clock::now() < deadline && state_->connections() > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  on_all(&Connection::close);
  for (const auto& loop : state_->loops) loop->loop.join();
}

}  // namespace octavo::grpc
