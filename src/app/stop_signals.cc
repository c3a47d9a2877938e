#include "app/stop_signals.h"

#include <cstdlib>
#include <thread>

namespace octavo {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::thread([state = state_, signals = signals_] {
    for (int signal = 0; sigwait(&signals, &signal) == 0;) {
      if (signal == SIGUSR1) {
        const std::lock_guard lock(state->mutex);
        if (state->on_usr1) state->on_usr1();
        continue;
      }
      if (!state->may_wait.exchange(false)) std::_Exit(128 + signal);
      state->arrived.release();
    }
  }).detach();
}

void StopSignals::wait(std::function<void()> on_usr1) {
  const auto set = [&](std::function<void()> call) {
    const std::lock_guard lock(state_->mutex);
    state_->on_usr1 = std::move(call);
  };
  set(std::move(on_usr1));
  state_->may_wait = true;
  state_->arrived.acquire();
  set({});
}

}  // namespace octavo
