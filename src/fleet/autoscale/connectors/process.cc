#include "fleet/autoscale/connectors/process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <ranges>
#include <utility>

#include "base/log.h"
#include "fleet/observe/server_load.h"
#include "fleet/observe/server_pages.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kHealthIntervalUs = 500'000;
constexpr std::int64_t kKeepUs = 3'000'000;  // interval between checks that the router still lists a server
// A server counts as hanging, and is killed, after kMissedMin failed health requests in a row, if it has not
// responded for kSilentUs.
constexpr std::int64_t kSilentUs = 10'000'000;
constexpr int kMissedMin = 3;
// A request reaches the server at most this time after the router has chosen the server.
constexpr std::int64_t kQuietUs = 1'000'000;
constexpr std::int64_t kEndUs = 60'000'000;

bool is_free(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

}  // namespace

std::string ProcessConnector::Server::url() const { return fmt::format("http://127.0.0.1:{}", port); }

void ProcessConnector::tick(int replicas, std::int64_t now_us) {
  for (Server& server : servers_) look_after(server, now_us);
  std::erase_if(servers_, [](const Server& server) { return server.phase == Phase::ended; });
  const auto wanted = std::ranges::count_if(
      servers_, [](const Server& s) { return s.phase == Phase::starting || s.phase == Phase::serving; });
  for (auto existing = wanted; existing < replicas && now_us >= next_us_; ++existing) add(now_us);
  for (auto existing = wanted; existing > replicas && now_us >= next_us_; --existing) remove(now_us);
}

bool ProcessConnector::end(std::int64_t now_us) {
  while (Server* serving = newest(Phase::serving)) {
    (void)serving->entry->remove();  // a router that does not respond sends no requests, either
    enter(*serving, Phase::draining, now_us);
  }
  next_us_ = now_us;
  tick(0, now_us);
  return servers_.empty();
}

void ProcessConnector::look_after(Server& server, std::int64_t now_us) {
  if (!server.process.running()) {
    const Phase last = std::exchange(server.phase, Phase::ended);
    if (last == Phase::ending) return log_info("{} has exited", server.url());
    log_warning("{}: the server {}", server.url(), server.process.fate());
    // If the removal fails, the router's health checks notice that the server has ended.
    if (last == Phase::serving) (void)server.entry->remove();
    next_us_ = now_us + options_.restart_us;
    return;
  }
  if (now_us - server.requested_us < kHealthIntervalUs) return;
  server.requested_us = now_us;
  const std::int64_t lasted_us = now_us - server.since_us;
  if (server.phase == Phase::starting) {
    const auto health = call_server(server.url(), "GET", "/health", {}, options_.api_key);
    if (health && health->status == 200) {
      if (const auto done = server.entry->keep(); !done) {
        server.requested_us += options_.restart_us;
        return log_warning("{} is ready, but cannot be registered: {}", server.url(), done.error().message);
      }
      log_info("{} is ready after {:.1f} s", server.url(), static_cast<double>(lasted_us) * 1e-6);
      enter(server, Phase::serving, now_us);
    } else if (lasted_us > options_.startup_us) {
      log_warning("{} was not ready within --startup-timeout", server.url());
      server.process.kill();
    }
  }
  if (server.phase == Phase::serving) when_serving(server, now_us);
  if (server.phase == Phase::draining) when_draining(server, now_us);
  if (server.phase == Phase::ending && lasted_us > kEndUs) server.process.kill();
}

// Any response counts: the server may be asleep or overloaded, but it does not hang.
void ProcessConnector::when_serving(Server& server, std::int64_t now_us) {
  if (call_server(server.url(), "GET", "/health", {}, options_.api_key)) {
    server.received_us = now_us;
    server.missed = 0;
  } else if (++server.missed >= kMissedMin && now_us - server.received_us >= kSilentUs) {
    log_warning("{} has not answered for {} s and is killed", server.url(), kSilentUs / 1'000'000);
    return server.process.kill();
  }
  if (now_us - server.kept_us < kKeepUs) return;
  server.kept_us = now_us;
  const Result<> kept = server.entry->keep();
  if (!kept && server.listed)
    log_warning("cannot register {}, retrying: {}", server.url(), kept.error().message);
  server.listed = kept.has_value();
}

void ProcessConnector::when_draining(Server& server, std::int64_t now_us) {
  const auto page = call_server(server.url(), "GET", "/metrics", {}, options_.api_key);
  const auto load = page && page->status == 200 ? read_server_load(page->body) : std::nullopt;
  if (!load || load->running + load->waiting > 0) {
    server.quiet_us = 0;
  } else if (server.quiet_us == 0) {
    server.quiet_us = now_us;
  }
  const bool quiet = server.quiet_us != 0 && now_us - server.quiet_us >= kQuietUs;
  if (!quiet && now_us - server.since_us < options_.drain_us) return;
  if (!quiet) log_warning("{} still has requests and gets SIGTERM", server.url());
  server.process.terminate();
  enter(server, Phase::ending, now_us);
}

void ProcessConnector::add(std::int64_t now_us) {
  // Takes a draining server back instead of starting a new one.
  if (Server* draining = newest(Phase::draining); draining && draining->entry->keep()) {
    log_info("{} keeps running", draining->url());
    return enter(*draining, Phase::serving, now_us);
  }
  const int port = free_port();
  auto process =
      port > 0
          ? OwnedProcess::start(boost::replace_all_copy(options_.command, "{port}", std::to_string(port)))
          : failure(ErrorCode::resource_exhausted, "no port from {} to {} is free", options_.first_port,
                    options_.last_port);
  if (!process) {
    log_warning("cannot start another server: {}", process.error().message);
    next_us_ = now_us + options_.restart_us;
    return;
  }
  servers_.push_back(
      {.port = port,
       .entry = router_entry({.host = "127.0.0.1", .api_key = options_.api_key}, options_.router,
                             {.url = fmt::format("http://*:{}", port), .role = options_.role}),
       .process = *std::move(process),
       .since_us = now_us});
  log_info("{} starts", servers_.back().url());
}

void ProcessConnector::remove(std::int64_t now_us) {
  if (Server* starting = newest(Phase::starting)) {
    starting->process.terminate();
    return enter(*starting, Phase::ending, now_us);
  }
  Server* serving = newest(Phase::serving);
  if (const auto done = serving->entry->remove(); !done) {
    next_us_ = now_us + options_.restart_us;
    return log_warning("{} cannot be removed: {}", serving->url(), done.error().message);
  }
  log_info("{} gets no more requests", serving->url());
  enter(*serving, Phase::draining, now_us);
}

void ProcessConnector::enter(Server& server, Phase phase, std::int64_t now_us) {
  server.phase = phase;
  server.since_us = now_us;
  server.quiet_us = 0;
  server.received_us = server.kept_us = now_us;
  server.missed = 0;
}

ProcessConnector::Server* ProcessConnector::newest(Phase phase) {
  const auto from_newest = std::views::reverse(servers_);
  const auto found = std::ranges::find(from_newest, phase, &Server::phase);
  return found != from_newest.end() ? &*found : nullptr;
}

int ProcessConnector::free_port() const {
  for (int port = options_.first_port; port <= options_.last_port; ++port)
    if (std::ranges::find(servers_, port, &Server::port) == servers_.end() && is_free(port)) return port;
  return 0;
}

}  // namespace octavo::fleet
