// Limits of sessions (engine/cache/session_table.h).
#pragma once

namespace octavo {

struct SessionLimits {
  // fraction of the cache's blocks that all sessions together may hold; 0: no sessions
  double held_fraction = 0.8;
  // fraction of the cache's blocks that all pinned sessions together may hold; one owner may pin half of it
  double pinned_fraction = 0.25;
  int sessions_max = 4096;
  int ttl_s = 3600;  // time to live of sessions whose requests set none
  // Whether clients may import sessions. Then the engine compares models by a hash of all bytes of their
  // files, because an import decides the content of cached prefixes. Without imports, the engine computes no
  // hash, and exports nothing.
  bool imports = false;
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
