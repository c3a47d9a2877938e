// One frame of `octavo top`: a table of servers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/observe/server_load.h"

namespace octavo {

struct TopRow {
  std::string name;
  std::optional<fleet::ServerLoad> load = {};  // in the last interval; nullopt: no response
  std::string problem = {};                    // why the server did not respond
};

// seconds: length of the interval. If there are several servers, the last row has the sums. Each line ends
// with a line feed.
std::string top_frame(const std::vector<TopRow>& rows, double seconds);

}  // namespace octavo
