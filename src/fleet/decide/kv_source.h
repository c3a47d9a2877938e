// Chooses the endpoint from which to fetch KV blocks.
#pragma once

#include "fleet/decide/plugin.h"

namespace octavo::fleet {

class KvSource : public Plugin {
 public:
  // The candidate from which `computing` should fetch blocks, according to the producers' results. Null:
  // none.
  virtual const Member* source(Cycle& cycle, const Candidates& candidates, EndpointId computing) = 0;
};

}  // namespace octavo::fleet
