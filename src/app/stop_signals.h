// Signal handling of servers: SIGINT and SIGTERM stop the server, SIGUSR1 logs its state.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>

namespace octavo {

// The first SIGINT or SIGTERM stops the program gracefully, or kills it while the model loads. The second
// one kills it. Create this object before any thread, so that no other thread receives the signals.
class StopSignals {
 public:
  StopSignals();

  // Returns when the program must stop. Until then, calls `on_usr1` on another thread for each SIGUSR1.
  void wait(std::function<void()> on_usr1 = {});

 private:
  struct State {
    std::atomic<bool> may_wait = false;
    std::binary_semaphore arrived{0};
    std::mutex mutex;  // guards on_usr1
    std::function<void()> on_usr1;
  };
  sigset_t signals_{};
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace octavo
