// One picture of `octavo top`: a table of servers as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/observe/server_load.h"

namespace octavo {

struct TopRow {
  std::string name;                     // of the server
  std::optional<fleet::ServerLoad> load = {};  // in the last interval; nullopt: it did not answer
  std::string problem = {};             // why it did not
};

// seconds: the length of the interval. Behind several servers comes a line of them all. Lines end with a line
// feed.
std::string top_frame(const std::vector<TopRow>& rows, double seconds);

}  // namespace octavo
