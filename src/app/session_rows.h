// The list of sessions (GET /v1/sessions) as a table on a terminal.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

struct SessionRow {
  std::string id{};
  std::string state{};     // pinned, retained, demoted or importing
  double tokens = 0;       // at the end of the last turn
  double held_tokens = 0;  // whose blocks the session holds
  double hits = 0;         // fraction of the prompt tokens that were cached, in [0, 1]
  double turns = 0;
  double age_s = 0;
  double idle_s = 0;  // since the last turn, which was the last hit
};

struct SessionPage {
  std::vector<SessionRow> rows;
  bool more = false;  // more sessions follow after the last row
};

SessionRow read_session(const boost::json::object& session);
// Returns an `io` error if the body is no list of sessions.
Result<SessionPage> read_session_page(std::string_view body);

// Returns lines that end with a line feed: a heading, if `heading` is set, and a line for each session.
std::string session_lines(std::span<const SessionRow> rows, bool heading);

// Returns an empty line and a table of the sessions that hold the most tokens; "" without sessions.
std::string largest_sessions(std::vector<SessionRow> rows);

}  // namespace octavo
