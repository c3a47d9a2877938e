// The queue of requests for which no worker has room.
#pragma once

namespace octavo::fleet {

struct QueueOptions {
  int size = 0;  // requests; 0: a request that finds no room is refused
  int timeout_s = 60;
};

}  // namespace octavo::fleet
