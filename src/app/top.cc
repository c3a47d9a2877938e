// octavo top: shows the load of a server, or of the replicas of a router.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/commands.h"
#include "app/session_rows.h"
#include "app/top_frame.h"
#include "base/clock.h"
#include "fleet/observe/server_pages.h"
#include "http/url.h"
#include "local/flag_table.h"
#include "openai/session_path.h"

namespace octavo {
namespace {

constexpr std::string_view kFirstPage = "/v1/sessions?limit=1000";

struct TopCommand {
  std::vector<std::string> urls = {"127.0.0.1:8000"};
  std::string api_key;
  double interval_s = 2;
  bool once = false;
};

// In a server with many models, the request for the list would load a model.
bool may_list_sessions(const std::vector<TopRow>& rows) {
  return std::ranges::any_of(rows, [](const TopRow& row) { return row.load && row.load->sessions > 0; }) &&
         std::ranges::all_of(rows, [](const TopRow& row) { return row.models.empty(); });
}

// Adds the sessions of one server, at most kPagesMax pages. body: the first page.
void add_sessions(const TopCommand& c, const std::string& url, Result<std::string> body, SessionPage& all) {
  constexpr int kPagesMax = 10;
  for (int pages = 1;; ++pages) {
    const auto page = body ? read_session_page(*body) : std::unexpected(body.error());
    if (page) all.rows.insert(all.rows.end(), page->rows.begin(), page->rows.end());
    if (page && !page->more) return;
    if (!page || pages == kPagesMax) {
      all.more = all.more || pages > 1;
      return;
    }
    const std::string after = openai::encoded_session_id(page->rows.back().id);
    body = fleet::pages_of({url}, fmt::format("{}&after={}", kFirstPage, after), c.api_key).at(url);
  }
}

// Returns the sessions of all servers that list them. A router lists those of its workers.
SessionPage sessions_at(const TopCommand& c) {
  SessionPage all;
  for (const auto& [url, body] : fleet::pages_of(c.urls, kFirstPage, c.api_key))
    add_sessions(c, url, body, all);
  return all;
}

// Runs until a signal or, with --once, for one interval.
Result<> top(const TopCommand& c) {
  for (const std::string& url : c.urls) TRY_VOID(http::parse_url(url));
  const bool screen = isatty(STDOUT_FILENO) == 1 && !c.once;
  std::map<std::string, fleet::ServerLoad> before;
  for (std::int64_t last_us = 0;;) {
    const std::int64_t now_at_us = now_us();
    std::vector<TopRow> rows;
    std::map<std::string, fleet::ServerLoad> now;
    for (const auto& [server, page] : fleet::metrics_pages(fleet::servers_at(c.urls, c.api_key), c.api_key)) {
      TopRow& row = rows.emplace_back(TopRow{.name = server});
      if (page) {
        const fleet::ServerLoad load = fleet::read_server_load(*page).value_or(fleet::ServerLoad{});
        if (const auto old = before.find(server); old != before.end()) row.load = since(old->second, load);
        row.problem = "first seen";
        row.models = fleet::read_model_states(*page);
        now.emplace(server, load);
      } else {
        row.problem = page.error().message;
      }
    }
    if (last_us != 0) {
      const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
      const std::string frame = top_frame(rows, static_cast<double>(now_at_us - last_us) * 1e-6,
                                          std::chrono::duration<double>(since_1970).count());
      const std::string sessions = may_list_sessions(rows) ? largest_sessions(sessions_at(c)) : "";
      // On a terminal, each frame replaces the previous one.
      fmt::print("{}{}{}{}", screen ? "\x1b[H\x1b[J" : "", frame, sessions, screen || c.once ? "" : "\n");
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
      program.add_subcommand("top", "Show the load of a server, or of the replicas of a router");
  auto options = std::make_shared<TopCommand>();
  command
      ->add_option("--url", options->urls,
                   "Servers and routers to watch, as HOST:PORT or http(s)://HOST:PORT; for a router, all its "
                   "replicas are shown")
      ->capture_default_str();
  command->add_option("--api-key", options->api_key, "API key to send to the servers and routers")
      ->envname("OCTAVO_API_KEY");
  command->add_option("--interval", options->interval_s, "Seconds between two updates")
      ->check(number_between(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--once", options->once, "Show the load once and exit");
  outcome.runs(*command, options, top);
}

}  // namespace octavo
