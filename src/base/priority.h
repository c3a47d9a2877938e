// Thread priorities: the share of CPU time when threads compete.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace octavo {

// Nice values. Each unit lowers a thread's share of CPU time by about a fifth. Compared with the engine's
// thread, threads that copy blocks (kMoves) get a third, and threads that prepare work (kPrepares) get a
// tenth.
inline constexpr int kMoves = 5, kPrepares = 10;

// Affects only the calling thread, and only while other threads need the processor.
inline void lower_priority(int nice) {
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + nice);
}

}  // namespace octavo
