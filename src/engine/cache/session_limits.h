// Limits of sessions (engine/cache/session_table.h).
#pragma once

namespace octavo {

struct SessionLimits {
  double held_fraction = 0.8;     // of the blocks of the cache: all sessions together; 0: no sessions
  double pinned_fraction = 0.25;  // of the blocks of the cache: all pins together; one owner: half of it
  int sessions_max = 4096;
  int ttl_s = 3600;  // time to live of sessions whose requests set none
  // cost of attention to one earlier token, relative to the other work for a token
  double attention_weight = 0;

  // Returns the limits with the attention weight of a model; `work` is a WorkFigures.
  SessionLimits with_cost(const auto& work) const {
    SessionLimits limits = *this;
    if (work.operations_per_token > 0)
      limits.attention_weight = work.operations_per_pair / work.operations_per_token;
    return limits;
  }
};

}  // namespace octavo
