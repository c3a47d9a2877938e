// Messages of an EngineProcess in both directions.
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "remote/engine_process.h"

namespace octavo::remote {

void EngineProcess::take_commands() {
  wakeup_.clear();
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(shared_.commands);
  }
  for (Command& command : commands) std::visit([this](auto& each) { take(std::move(each)); }, command);
}

// Sends a message if the process is up. Otherwise it drops the message: greet() sends all unfinished
// requests and commands later.
template <class Message>
void EngineProcess::send(const Message& message) {
  if (up() != nullptr) append_frame(child_.socket.out, message);
}

void EngineProcess::take(Accepted&& accepted) {
  if (!accepted.request.entropy) accepted.request.entropy = random_bits(options_.seed, accepted.id);
  send(
      requests_.add(accepted.id, std::move(accepted.request), std::move(accepted.sink), accepted.arrived_us));
}

void EngineProcess::take(const Abort& abort) {
  if (!requests_.mark_aborted(abort.id)) return;
  if (up() == nullptr) return requests_.abort(abort.id);
  send(abort);
}

void EngineProcess::take(AdapterCommand&& command) {
  send(adapters_.add(std::move(command.change), std::move(command.done)));
}

void EngineProcess::take(SessionsCommand&& command) {
  send(sessions_.add(std::move(command.command), std::move(command.done)));
}

void EngineProcess::take(const ResetPrefixCache& reset) {
  sessions_.cache_emptied();
  send(reset);
}

void EngineProcess::take(const DropKeptCache&) {
  if (!std::holds_alternative<state::Unloaded>(state_)) return;
  sessions_.cache_emptied();
  clear_kept();
}

void EngineProcess::take(PauseCommand&& command) { send(pauses_.add(command.mode, std::move(command.done))); }

void EngineProcess::take(const Resume& resume) {
  send(resume);
  pauses_.resume();
}

Result<> EngineProcess::receive() {
  const bool connected = child_.socket.receive();
  for (;;) {
    TRY(const auto frame, child_.socket.next());
    if (!frame) break;
    TRY(FromEngine message, read_from_engine(*frame));
    TRY_VOID(take(std::move(message)));
  }
  if (!connected) return failure(ErrorCode::internal, "");
  if (state::Up* const is_up = up()) is_up->received_us = now_us();
  return {};
}

Result<> EngineProcess::take(FromEngine&& message) {
  if (auto* output = std::get_if<Output>(&message)) {
    const bool produced = requests_.take(std::move(*output), now_us());
    if (state::Up* const is_up = up()) is_up->produced |= produced;
  } else if (const auto* stats = std::get_if<EngineStats>(&message)) {
    if (!stats->condition.healthy) return failure(ErrorCode::internal, "the engine's device failed");
    const std::lock_guard lock(mutex_);
    shared_.stats = *stats;
  } else if (const auto* changed = std::get_if<AdapterChanged>(&message)) {
    adapters_.take(*changed, requests_);
  } else if (const auto* slept = std::get_if<Slept>(&message)) {
    state::Up* const is_up = up();
    if (is_up == nullptr) return {};
    const Result<> result = slept->error ? Result<>(std::unexpected(*slept->error)) : Result<>();
    Done done;
    {
      const std::lock_guard lock(mutex_);
      done = shared_.sleep.slept(std::exchange(is_up->sleep_ordered, 0), result);
    }
    if (done) done(result);
  } else if (const auto* awake = std::get_if<Woken>(&message)) {
    const Result<> result = awake->error ? Result<>(std::unexpected(*awake->error)) : Result<>();
    Done done;
    {
      const std::lock_guard lock(mutex_);
      done = shared_.sleep.woken(result);
    }
    if (done) done(result);
  } else if (const auto* paused = std::get_if<Paused>(&message)) {
    pauses_.take(*paused);
  } else if (auto* sessions = std::get_if<SessionsChanged>(&message)) {
    sessions_.take(std::move(*sessions), now_us());
  } else if (const auto* loading = std::get_if<Loading>(&message)) {
    if (!start_reported_ && options_.progress) options_.progress(loading->done, loading->all);
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    return greet(*ready);
  } else if (const auto* failed = std::get_if<Failed>(&message)) {
    if (auto* is_loading = std::get_if<state::Loading>(&state_)) is_loading->error = failed->error;
  }
  return {};
}

// Sends everything that a new process needs: adapters, pauses and unfinished requests.
Result<> EngineProcess::greet(const Ready& ready) {
  if (ready.version != wire_version())
    return failure(ErrorCode::corrupt,
                   "the engine has wire version {:x}, expected {:x}: run the same octavo on both sides",
                   ready.version, wire_version());
  if (!std::holds_alternative<state::Loading>(state_))
    return failure(ErrorCode::corrupt, "the engine reported twice that it is ready");
  state_ = after(state_, event::Ready{now_us()});
  Done woken, loaded;
  {
    const std::lock_guard lock(mutex_);
    shared_.presence = EnginePresence::up;
    woken = shared_.sleep.woken({});
    loaded = shared_.load.ready();
  }
  if (!std::exchange(start_reported_, true)) {
    info_ = ready.info;
    requests_.set_engine(info_.index);
    started_.set_value({});
  }
  if (restarts_.deaths() > 0) log_info("the engine runs again and continues {} requests", requests_.size());
  if (woken) woken({});
  if (loaded) loaded({});
  end_change_of_weights();
  adapters_.append_all(child_.socket.out, requests_);
  sessions_.append_all(child_.socket.out, now_us());
  pauses_.append_before_requests(child_.socket.out);
  requests_.append_all(child_.socket.out);
  pauses_.append_after_requests(child_.socket.out);
  return {};
}

void EngineProcess::end_change_of_weights() {
  WeightsChange::Ended ended;
  {
    const std::lock_guard lock(mutex_);
    ended = shared_.weights.ready();
  }
  if (!ended.done) return;
  if (ended.result) log_info("the engine has new weights and continues {} requests", requests_.size());
  ended.done(ended.result);
}

}  // namespace octavo::remote
