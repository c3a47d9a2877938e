// Chooses an endpoint to fetch KV blocks from.
#pragma once

#include "fleet/decide/plugin.h"

namespace octavo::fleet {

class KvSource : public Plugin {
 public:
  // The candidate from which `computing` should fetch blocks, by the producers' results; null if none fits.
  virtual const Member* source(Cycle& cycle, const Candidates& candidates, EndpointId computing) = 0;
};

}  // namespace octavo::fleet
