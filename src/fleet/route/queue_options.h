// Queue for requests if no worker has capacity.
#pragma once

namespace octavo::fleet {

struct QueueOptions {
  int size = 0;  // maximum number of requests; 0: requests are refused if no worker has capacity
  int timeout_s = 60;
};

}  // namespace octavo::fleet
