// Interface of plugins that choose a source of KV blocks: a peer from which the computing endpoint fetches
// blocks.
#pragma once

#include "fleet/decide/plugin.h"

namespace octavo::fleet {

class KvSource : public Plugin {
 public:
  // Returns the candidate from which the endpoint `computing` should fetch KV blocks. Returns null if it
  // should not fetch any.
  virtual const Member* source(Cycle& cycle, const Candidates& candidates, EndpointId computing) = 0;
};

}  // namespace octavo::fleet
