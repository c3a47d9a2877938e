// For tests: waits for a state that another thread or process reaches.
#pragma once

#include <chrono>
#include <thread>

namespace octavo {

// Waits until the condition is true. Returns false after two minutes, which is enough even on a busy
// machine.
template <class Condition>
bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace octavo
