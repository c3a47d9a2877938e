// Processor share of a thread when other threads compete for it.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace octavo {

// Nice values; each step lowers the share by about a fifth. Threads that move blocks get a third of a step
// thread's share, threads that prepare a tenth.
inline constexpr int kMoves = 5, kPrepares = 10;

// Lowers the priority of the calling thread only. No effect while no other thread wants the processor.
inline void lower_priority(int nice) {
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + nice);
}

}  // namespace octavo
