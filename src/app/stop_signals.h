// The signals of a server: SIGINT and SIGTERM stop it, SIGUSR1 requests its state.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>

namespace octavo {

// Handles SIGINT and SIGTERM. While the model loads, the first signal ends the program; later, the second
// signal does. Create it before any other thread, so that no other thread receives the signals.
class StopSignals {
 public:
  StopSignals();

  // Returns when the program should stop. Until then, calls `on_usr1` on another thread for each SIGUSR1.
  void wait(std::function<void()> on_usr1 = {});

 private:
  struct State {
    std::atomic<bool> may_wait = false;
    std::binary_semaphore came{0};
    std::mutex mutex;  // guards on_usr1
    std::function<void()> on_usr1;
  };
  sigset_t signals_{};
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace octavo
