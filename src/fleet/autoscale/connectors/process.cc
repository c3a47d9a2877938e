#include "fleet/autoscale/connectors/process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <ranges>

#include "base/log.h"
#include "fleet/observe/server_load.h"
#include "fleet/observe/server_pages.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::int64_t kAskUs = 500'000;      // time between two health requests to a server
constexpr std::int64_t kQuietUs = 1'000'000;  // within this time, a request that the router has just sent
                                              // arrives
constexpr std::int64_t kEndUs = 60'000'000;   // time after SIGTERM; then the process is killed

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
  std::erase_if(servers_, [](Server& server) { return !server.process.running(); });
  const auto wanted = std::ranges::count_if(
      servers_, [](const Server& s) { return s.phase == Phase::starting || s.phase == Phase::serving; });
  for (auto there = wanted; there < replicas && now_us >= next_us_; ++there) add(now_us);
  for (auto there = wanted; there > replicas && now_us >= next_us_; --there) remove(now_us);
}

bool ProcessConnector::end(std::int64_t now_us) {
  while (Server* serving = newest(Phase::serving)) {
    (void)strike(*serving);  // a router that does not answer sends no requests either
    enter(*serving, Phase::draining, now_us);
  }
  next_us_ = now_us;
  tick(0, now_us);
  return servers_.empty();
}

void ProcessConnector::look_after(Server& server, std::int64_t now_us) {
  if (!server.process.running()) {
    if (server.phase == Phase::ending) return log_info("{} has ended", server.url());
    log_warning("{}: the server {}", server.url(), server.process.fate());
    // the router's health checks also notice the end
    if (server.phase == Phase::serving) (void)strike(server);
    next_us_ = now_us + options_.restart_us;
    return;
  }
  if (now_us - server.asked_us < kAskUs) return;
  server.asked_us = now_us;
  const std::int64_t lasted_us = now_us - server.since_us;
  if (server.phase == Phase::starting) {
    const auto health = ask_server(server.url(), "GET", "/health", {}, options_.api_key);
    if (health && health->status == 200) {
      if (const auto done = enlist(server); !done) {
        server.asked_us += options_.restart_us;
        return log_warning("{} is ready, but cannot be registered: {}", server.url(), done.error().message);
      }
      log_info("{} is ready after {:.1f} s", server.url(), static_cast<double>(lasted_us) * 1e-6);
      enter(server, Phase::serving, now_us);
    } else if (lasted_us > options_.startup_us) {
      log_warning("{} was not ready in time", server.url());
      server.process.kill();
    }
  }
  if (server.phase == Phase::draining) when_draining(server, now_us);
  if (server.phase == Phase::ending && lasted_us > kEndUs) server.process.kill();
}

void ProcessConnector::when_draining(Server& server, std::int64_t now_us) {
  const auto page = ask_server(server.url(), "GET", "/metrics", {}, options_.api_key);
  const ServerLoad load =
      page && page->status == 200 ? read_server_load(page->body) : ServerLoad{.running = 1};
  if (load.running + load.waiting > 0) {
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
  // A draining server that has not ended is reused at once.
  if (Server* draining = newest(Phase::draining); draining && enlist(*draining)) {
    log_info("{} stays", draining->url());
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
  servers_.push_back({.port = port, .process = *std::move(process), .since_us = now_us});
  log_info("{} starts", servers_.back().url());
}

void ProcessConnector::remove(std::int64_t now_us) {
  if (Server* starting = newest(Phase::starting)) {
    starting->process.terminate();
    return enter(*starting, Phase::ending, now_us);
  }
  Server* serving = newest(Phase::serving);
  if (const auto done = strike(*serving); !done) {
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

Result<> ProcessConnector::enlist(const Server& server) {
  json::object worker{{"url", server.url()}};
  if (!options_.worker_type.empty()) worker["worker_type"] = options_.worker_type;
  TRY(const http::Response answer,
      ask_server(options_.router, "POST", "/workers", json::serialize(worker), options_.api_key));
  if (answer.status / 100 == 2) return {};
  return failure(ErrorCode::io, "the router answered with status {}: {}", answer.status, answer.body);
}

Result<> ProcessConnector::strike(const Server& server) {
  TRY(const http::Response list, ask_server(options_.router, "GET", "/workers", {}, options_.api_key));
  boost::system::error_code wrong;
  const json::value body = json::parse(list.body, wrong);
  const json::value* workers = wrong ? nullptr : body.find_pointer("/workers", wrong);
  if (workers == nullptr || !workers->is_array())
    return failure(ErrorCode::io, "the router lists no workers ({})", list.status);
  for (const json::value& worker : workers->get_array()) {
    const json::value* url = worker.find_pointer("/url", wrong);
    const json::value* id = worker.find_pointer("/id", wrong);
    if (!url || !id || !id->is_string() || *url != json::value(server.url())) continue;
    TRY(const http::Response answer,
        ask_server(options_.router, "DELETE", fmt::format("/workers/{}", std::string_view(id->get_string())),
                   {}, options_.api_key));
    if (answer.status / 100 == 2) return {};
    return failure(ErrorCode::io, "the router answered with status {}: {}", answer.status, answer.body);
  }
  return {};  // the router does not list it
}

}  // namespace octavo::fleet
