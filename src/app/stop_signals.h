// The signals that stop a server: SIGINT and SIGTERM.
#pragma once

#include <atomic>
#include <csignal>
#include <memory>
#include <semaphore>

namespace octavo {

// SIGINT and SIGTERM: while the model loads the first one ends the program, afterwards the second. Made
// before any other thread, so that none but this one's ever sees a signal.
class StopSignals {
 public:
  // Before any other thread starts.
  StopSignals();

  // Returns when the program is to stop.
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
