// Options of the router's queue, where requests wait while no worker has capacity.
#pragma once

namespace octavo::fleet {

struct QueueOptions {
  int size = 0;  // maximum number of waiting requests; 0: no queue, so requests are refused
  int timeout_s = 60;
};

}  // namespace octavo::fleet
