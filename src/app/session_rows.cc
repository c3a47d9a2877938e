#include "app/session_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <functional>
#include <iterator>

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kLargestMax = 10;

double number_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_number() ? value->to_number<double>() : 0;
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

// Replaces the control characters of Unicode, because a client chooses the id, and a terminal obeys them.
std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto before = static_cast<unsigned char>(i > 0 ? text[i - 1] : 0);
    if (byte < 0x20 || byte == 0x7f) text[i] = '?';
    if (before == 0xc2 && byte >= 0x80 && byte < 0xa0) text[i - 1] = text[i] = '?';
  }
  return text;
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.0f} h", seconds / 3600);
}

}  // namespace

SessionRow read_session(const json::object& session) {
  const json::value* usage = session.if_contains("usage");
  const double prompt = usage && usage->is_object() ? number_in(usage->get_object(), "prompt_tokens") : 0;
  return {.id = text_in(session, "id"),
          .state = text_in(session, "state"),
          .tokens = number_in(session, "tokens"),
          .held_tokens = number_in(session, "held_tokens"),
          .hits = prompt > 0 ? number_in(usage->get_object(), "cached_tokens") / prompt : 0,
          .turns = number_in(session, "turns"),
          .age_s = number_in(session, "age_seconds"),
          .idle_s = number_in(session, "idle_seconds")};
}

Result<SessionPage> read_session_page(std::string_view body) {
  boost::system::error_code wrong;
  const json::value parsed = json::parse(body, wrong);
  const json::object* list = wrong ? nullptr : parsed.if_object();
  const json::value* data = list ? list->if_contains("data") : nullptr;
  if (!data || !data->is_array())
    return failure(ErrorCode::io, "the server returned no list of sessions: is it an Octavo server?");
  SessionPage page;
  for (const json::value& session : data->get_array())
    if (session.is_object()) page.rows.push_back(read_session(session.get_object()));
  const json::value* more = list->if_contains("has_more");
  page.more = !page.rows.empty() && more && more->is_bool() && more->get_bool();
  return page;
}

std::string session_lines(std::span<const SessionRow> rows, bool heading) {
  constexpr std::string_view kRow = "{:<36} {:<9} {:>8} {:>8} {:>5} {:>8} {:>8} {:>8}\n";
  std::string out;
  if (heading) out = fmt::format(kRow, "SESSION", "STATE", "TOKENS", "HELD", "HIT%", "TURNS", "AGE", "LAST");
  for (const SessionRow& row : rows)
    fmt::format_to(std::back_inserter(out), kRow, printable(row.id), row.state, row.tokens, row.held_tokens,
                   fmt::format("{:.0f}", 100 * row.hits), row.turns, duration(row.age_s),
                   duration(row.idle_s));
  return out;
}

std::string largest_sessions(std::vector<SessionRow> rows) {
  if (rows.empty()) return "";
  std::ranges::stable_sort(rows, std::greater(), &SessionRow::held_tokens);
  const std::size_t shown = std::min(rows.size(), kLargestMax);
  const std::size_t hidden = rows.size() - shown;
  rows.resize(shown);
  return "\n" + session_lines(rows, true) +
         (hidden > 0 ? fmt::format("and {} smaller sessions\n", hidden) : "");
}

}  // namespace octavo
