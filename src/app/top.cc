// octavo top: the load of a server, or of the replicas behind a router, as a table.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <chrono>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/commands.h"
#include "app/top_frame.h"
#include "base/clock.h"
#include "http/client.h"
#include "http/url.h"

namespace octavo {
namespace {

struct TopCommand {
  std::vector<std::string> urls = {"127.0.0.1:8000"};
  std::string api_key;
  double interval_s = 2;
  bool once = false;
};

Result<std::string> fetch(const std::string& base, std::string_view path, const std::string& api_key) {
  constexpr int kTimeoutMs = 2000;
  constexpr std::uint64_t kPageMax = std::uint64_t{16} << 20;
  TRY(const http::Url at, http::parse_url(base));
  TRY(http::Client client, http::Client::connect({.host = at.host,
                                                  .port = at.port,
                                                  .tls = at.tls,
                                                  .timeout_ms = kTimeoutMs,
                                                  .body_bytes_max = kPageMax}));
  http::Headers headers;
  if (!api_key.empty()) headers.add("Authorization", "Bearer " + api_key);
  TRY(http::Response response, client.request("GET", path, {}, headers));
  if (response.status == 200) return std::move(response.body);
  return failure(ErrorCode::io, "GET {} is answered with {}", path, response.status);
}

// Of a router the addresses of its replicas, of anything else the address itself.
std::vector<std::string> servers_at(const std::string& url, const std::string& api_key) {
  const auto listed = fetch(url, "/workers", api_key);
  if (!listed) return {url};
  boost::json::error_code wrong;
  const boost::json::value body = boost::json::parse(*listed, wrong);
  const boost::json::value* workers = wrong ? nullptr : body.find_pointer("/workers", wrong);
  if (workers == nullptr || !workers->is_array()) return {url};
  std::vector<std::string> found;
  for (const boost::json::value& worker : workers->get_array())
    if (const boost::json::value* at = worker.find_pointer("/url", wrong); at != nullptr && at->is_string())
      found.emplace_back(at->get_string());
  return found;
}

// The pages of all servers, asked for at the same time.
std::map<std::string, Result<std::string>> pages(const TopCommand& c) {
  std::vector<std::pair<std::string, std::future<Result<std::string>>>> asked;
  for (const std::string& url : c.urls)
    for (const std::string& server : servers_at(url, c.api_key))
      asked.emplace_back(server, std::async(std::launch::async, fetch, server, "/metrics", c.api_key));
  std::map<std::string, Result<std::string>> all;
  for (auto& [server, page] : asked) all.emplace(server, page.get());
  return all;
}

// Watches until it is interrupted, or with --once for one interval.
Result<> top(const TopCommand& c) {
  for (const std::string& url : c.urls) TRY_VOID(http::parse_url(url));
  const bool screen = isatty(STDOUT_FILENO) == 1 && !c.once;
  std::map<std::string, ServerLoad> before;
  for (std::int64_t last_us = 0;;) {
    const std::int64_t now_at_us = now_us();
    std::vector<TopRow> rows;
    std::map<std::string, ServerLoad> now;
    for (const auto& [server, page] : pages(c)) {
      TopRow& row = rows.emplace_back(TopRow{.name = server});
      if (page) {
        const ServerLoad load = read_server_load(*page);
        if (const auto old = before.find(server); old != before.end()) row.load = since(old->second, load);
        row.problem = "first seen";
        now.emplace(server, load);
      } else {
        row.problem = page.error().message;
      }
    }
    if (last_us != 0) {
      const std::string frame = top_frame(rows, static_cast<double>(now_at_us - last_us) * 1e-6);
      // On a screen each picture takes the place of the last one.
      fmt::print("{}{}{}", screen ? "\x1b[H\x1b[J" : "", frame, screen || c.once ? "" : "\n");
      std::fflush(stdout);
      if (c.once) return {};
    }
    before = std::move(now);
    last_us = now_at_us;
    std::this_thread::sleep_for(std::chrono::duration<double>(c.interval_s));
  }
}

}  // namespace

void add_top(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("top", "Watch the load of a server, or of the replicas behind a router");
  auto options = std::make_shared<TopCommand>();
  command
      ->add_option("--url", options->urls,
                   "Servers and routers to watch, HOST:PORT or http(s)://HOST:PORT; the replicas of a router "
                   "are shown "
                   "one by one")
      ->capture_default_str();
  command->add_option("--api-key", options->api_key, "Key to show to them")->envname("OCTAVO_API_KEY");
  command->add_option("--interval", options->interval_s, "Seconds between two pictures")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--once", options->once, "One picture, of one interval");
  command->callback([options, &outcome] {
    if (const auto done = top(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
