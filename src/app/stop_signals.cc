#include "app/stop_signals.h"

#include <cstdlib>
#include <thread>

namespace octavo {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::thread([state = state_, signals = signals_] {
    for (int signal = 0; sigwait(&signals, &signal) == 0;) {
      if (!state->may_wait.exchange(false)) std::_Exit(128 + signal);
      state->came.release();
    }
  }).detach();
}

void StopSignals::wait() {
  state_->may_wait = true;
  state_->came.acquire();
}

}  // namespace octavo
