// How much of a processor a thread gets beside others that want it.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace octavo {

// Nice values, each a fifth less than the one before: what moves blocks gets a third beside a step's thread, what only
// prepares a tenth.
inline constexpr int kMoves = 5, kPrepares = 10;

// Of the calling thread alone, below what it has now. Where nobody else wants the processor nothing changes.
inline void lower_priority(int nice) {
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + nice);
}

}  // namespace octavo
