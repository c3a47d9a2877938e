// Who has the blocks of a prompt that somebody else computes.
#pragma once

#include "fleet/decide/plugin.h"

namespace octavo::fleet {

class KvSource : public Plugin {
 public:
  // Of the candidates one that `computing` had better fetch blocks from, by what producers have found; null:
  // there is none.
  virtual const Member* source(Cycle& cycle, const Candidates& candidates, EndpointId computing) = 0;
};

}  // namespace octavo::fleet
