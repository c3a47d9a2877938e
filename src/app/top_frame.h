// A frame of `octavo top`: a table of servers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/observe/server_load.h"

namespace octavo {

struct TopRow {
  std::string name;
  std::optional<fleet::ServerLoad> load = {};  // load in the last interval; nullopt: no answer
  std::string problem = {};                    // why the server did not answer
};

// seconds: length of the interval. With several servers, the last row is their sum. Each line ends with a
// line feed.
std::string top_frame(const std::vector<TopRow>& rows, double seconds);

}  // namespace octavo
