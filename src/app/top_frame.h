// One frame of `octavo top`: a table of servers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/observe/model_states.h"
#include "fleet/observe/server_load.h"

namespace octavo {

struct TopRow {
  std::string name;
  std::optional<fleet::ServerLoad> load = {};  // in the last interval; nullopt: no response
  std::string problem = {};                    // why the server did not respond
  std::vector<fleet::ModelState> models = {};  // of a server with many models
};

// seconds: length of the interval. now: seconds since 1970. If there are several servers, the last row has
// the sums. A second table has the models of servers with many models. Each line ends with a line feed.
std::string top_frame(const std::vector<TopRow>& rows, double seconds, double now);

}  // namespace octavo
