// The signals that stop a server: SIGINT and SIGTERM.
#pragma once

#include <atomic>
#include <csignal>
#include <memory>
#include <semaphore>

namespace octavo {

// Handles SIGINT and SIGTERM. While the model loads, the first signal ends the program; later the second
// does. Create it before any other thread, so that no other thread receives the signals.
class StopSignals {
 public:
  // Call it before any other thread starts.
  StopSignals();

  // Returns when the program should stop.
  void wait();

 private:
  struct State {
    std::atomic<bool> may_wait = false;
    std::binary_semaphore came{0};
  };
  sigset_t signals_{};
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace octavo
