// Waits for a change of a 32-bit number in memory: a short spin, then a sleep in the kernel.
//
// std::atomic's wait() is no alternative: libstdc++ calls sched_yield() before it sleeps. Since Linux 6.18, a
// thread that yields loses its whole slice of 3 ms to any other thread that can run on the processor.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <concepts>
#include <cstdint>

namespace octavo {

template <class Number>
concept FutexNumber = std::same_as<Number, std::int32_t> || std::same_as<Number, std::uint32_t>;

// One iteration of a spin.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps if the number equals `value`, until a call of futex_wake_all() or until `timeout` (null: none). May
// return earlier. Processes that share the memory may use the same number.
template <FutexNumber Number>
void futex_wait(std::atomic<Number>& number, Number value, const timespec* timeout = nullptr) {
  static_assert(std::atomic<Number>::is_always_lock_free && sizeof number == sizeof value);
  syscall(SYS_futex, reinterpret_cast<Number*>(&number), FUTEX_WAIT, value, timeout, nullptr, 0);
}

// Wakes all threads that sleep on the number.
template <FutexNumber Number>
void futex_wake_all(std::atomic<Number>& number) {
  syscall(SYS_futex, reinterpret_cast<Number*>(&number), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace octavo
