// Interface of plugins that choose the endpoint from which KV blocks are fetched.
#pragma once

#include "fleet/decide/plugin.h"

namespace octavo::fleet {

class KvSource : public Plugin {
 public:
  // Returns the candidate from which `computing` should fetch blocks, according to the producers' results;
  // null if it should fetch none.
  virtual const Member* source(Cycle& cycle, const Candidates& candidates, EndpointId computing) = 0;
};

}  // namespace octavo::fleet
