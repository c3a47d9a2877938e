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
  // load in the last interval; nullopt: the server did not respond
  std::optional<fleet::ServerLoad> load = {};
  std::string problem = {};                    // why the server did not respond
  // models of a server with many models; empty: the server has one model
  std::vector<fleet::ModelState> models = {};
};

// seconds: length of the interval. now: seconds since 1970. If there are several servers, the last row has
// the sums. A second table has the models of servers with many models. Each line ends with a line feed.
std::string top_frame(const std::vector<TopRow>& rows, double seconds, double now);

}  // namespace octavo
