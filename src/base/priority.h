// Priorities of threads: how much of the processor a thread gets when other threads compete for it.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace octavo {

// Nice values; each unit lowers a thread's share of the processor by about a fifth. Threads that move blocks
// (kMoves) get a third of the share of the engine's thread, and threads that prepare work (kPrepares) get a
// tenth.
inline constexpr int kMoves = 5, kPrepares = 10;

// Lowers the priority of the calling thread only. It has no effect while no other thread needs the processor.
inline void lower_priority(int nice) {
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + nice);
}

}  // namespace octavo
