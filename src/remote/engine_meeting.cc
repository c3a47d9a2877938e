#include "remote/engine_meeting.h"

#include <fmt/ranges.h>
#include <poll.h>

#include <array>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "remote/child_process.h"

namespace octavo::remote {
namespace {

constexpr std::uint64_t kMagic = 0x31474e454f54434f;  // identifies the protocol and its version
constexpr int kLookMs = 200;
constexpr int kLogMs = 10'000;  // interval of log lines while the engine's host waits

// First message from the engine's host.
struct Coming {
  std::uint64_t magic = kMagic;
  Hash128 identity = {};
  std::int32_t engine = 0;
};

struct Welcome {
  std::int32_t accepted = 1;
  std::array<char, 252> why = {};
};

Hash128 identity_of(const EngineMeetingOptions& options) {
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(options.identity)), 0);
}

bool is_closed(const Socket& socket) {
  pollfd ended{socket.fd(), POLLRDHUP, 0};
  return poll(&ended, 1, 0) > 0;
}

void sleep_ms(int ms) { poll(nullptr, 0, ms); }

// Connects to the server and retries until the server accepts the engine. Returns nullopt after a stop
// request.
Result<std::optional<Socket>> join_server(const EngineMeetingOptions& server, int engine,
                                          const std::stop_token& stop) {
  for (std::int64_t logged_us = now_us(); !stop.stop_requested(); sleep_ms(kLookMs)) {
    TRY(const TcpAddress address, resolve("data_parallel_address", server.address, server.port));
    auto socket = connect_to(address);
    Welcome answer;
    if (socket && write_value(*socket, Coming{.identity = identity_of(server), .engine = engine}) &&
        read_value(*socket, answer)) {
      if (!answer.accepted) return invalid("data_parallel_start_rank", "{}", answer.why.data());
      return std::optional(*std::move(socket));
    }
    if (now_us() < logged_us + std::int64_t{kLogMs} * 1000) continue;
    logged_us = now_us();
    log_info("engine {} waits for its server at {}:{}: {}", engine, server.address, server.port,
             socket ? "no answer" : socket.error().message);
  }
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<EngineMeeting>> EngineMeeting::open(EngineMeetingOptions options,
                                                           std::set<int> engines) {
  TRY(const TcpAddress address, resolve("data_parallel_address", options.address, options.port));
  TRY(Socket listener, listen_at(address));
  return std::shared_ptr<EngineMeeting>(
      new EngineMeeting(std::move(options), std::move(engines), std::move(listener)));
}

EngineMeeting::EngineMeeting(EngineMeetingOptions options, std::set<int> engines, Socket listener)
    : options_(std::move(options)),
      engines_(std::move(engines)),
      thread_([this, at = std::make_shared<Socket>(std::move(listener))](const std::stop_token& stop) {
        while (!stop.stop_requested()) greet(*at);
      }) {}

// Accepts engines, and closes connections with invalid messages. A new connection replaces an older one of
// the same engine.
void EngineMeeting::greet(const Socket& listener) {
  auto accepted = accept_from(listener, kLookMs);
  if (!accepted) {
    // for example, no free descriptor
    if (accepted.error().code == ErrorCode::io) sleep_ms(kLookMs);
    return;
  }
  Socket socket = std::move(accepted->first);
  Coming who;
  if (!read_value(socket, who) || who.magic != kMagic) return;
  Welcome answer;
  if (!engines_.contains(who.engine) || who.identity != identity_of(options_)) {
    answer.accepted = 0;
    fmt::format_to_n(answer.why.begin(), answer.why.size() - 1,
                     "engine {} does not belong to this server, which waits for engines {}: start both with "
                     "the same model and options",
                     who.engine, fmt::join(engines_, ", "));
  }
  if (!write_value(socket, answer) || !answer.accepted) return;
  log_info("engine {} of another host has connected", who.engine);
  const std::lock_guard lock(mutex_);
  sockets_.insert_or_assign(who.engine, std::move(socket));
}

std::optional<Socket> EngineMeeting::take(int engine) {
  const std::lock_guard lock(mutex_);
  auto found = sockets_.extract(engine);
  if (found.empty() || is_closed(found.mapped())) return std::nullopt;
  return std::move(found.mapped());
}

Result<> run_engine_of_host(const EngineMeetingOptions& server, int engine,
                            const std::vector<std::string>& command, const std::stop_token& stop,
                            const std::string& program) {
  static_assert(kServerSocket == kChildSocket + 1);
  for (Restarts restarts;;) {
    TRY(const std::optional<Socket> socket, join_server(server, engine, stop));
    if (!socket) return {};
    const std::int64_t began_us = now_us();
    const int shared[] = {socket->fd()};
    TRY(ChildProcess child, ChildProcess::start(command, program, shared));
    for (pollfd ended{child.socket.fd(), POLLIN, 0}; poll(&ended, 1, kLookMs) <= 0;)
      if (stop.stop_requested()) return {};
    const std::string fate = child.kill();
    log_warning("engine {}: {}; restarting it", engine, fate);
    if (!restarts.again(began_us))
      return failure(ErrorCode::unavailable, "engine {} failed several times in a row; last error: {}",
                     engine, fate);
    sleep_ms(kLookMs);
  }
}

}  // namespace octavo::remote
