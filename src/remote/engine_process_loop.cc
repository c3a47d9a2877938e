// The thread of an EngineProcess: waits for events and changes the state (engine_state.h).
#include <poll.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "remote/engine_process.h"

namespace octavo::remote {
namespace {

constexpr int kStopMs = 5'000;
constexpr int kMeetMs = 50;  // interval at which to look for the connection of an engine on another host

}  // namespace

void EngineProcess::run() {
  while (!std::holds_alternative<state::Stopped>(state_)) state_ = after(state_, next_event());
  take_commands();
  if (!std::exchange(start_reported_, true)) started_.set_value(std::unexpected(stopped()));
  end_commands_of_callers(stopped());
  end_all(stopped());
}

EngineEvent EngineProcess::next_event() {
  if (std::holds_alternative<state::Asleep>(state_)) return wait_asleep();
  if (std::holds_alternative<state::Unloaded>(state_)) return wait_unloaded();
  if (std::holds_alternative<state::Broken>(state_)) return refuse_requests();
  return run_process();
}

EngineEvent EngineProcess::run_process() {
  const Result<EngineEvent> event = serve_process();
  const std::string fate = child_.kill();
  const bool falls_asleep = event && std::holds_alternative<event::FellAsleep>(*event);
  const bool unloads = event && std::holds_alternative<event::UnloadWanted>(*event);
  // Clears the kept KV blocks after a sleep, to free the memory, and before a start with new weights, because
  // they are useless then. It also clears them if a process died while loading without reporting an error, or
  // if a restarted process cannot load. In these cases the memory may be too large or unreadable, or the new
  // process may need another size, which sealed memory cannot have.
  const auto* begun = std::get_if<state::Loading>(&state_);
  if (event ? !unloads && !std::holds_alternative<event::StopRequested>(*event)
            : begun != nullptr && (!begun->error || start_reported_))
    clear_kept();
  {
    const std::lock_guard lock(mutex_);
    shared_.pid = -1;
    if (!falls_asleep)
      shared_.presence = unloads                     ? EnginePresence::unloaded
                         : options_.on_several_hosts ? EnginePresence::away
                                                     : EnginePresence::starting;
    shared_.stats.requests.running = 0;
    if (shared_.stopping) return event::StopRequested{};
  }
  if (event) {
    requests_.end_aborted();
    return *event;
  }
  const auto* loading = std::get_if<state::Loading>(&state_);
  if (loading != nullptr && loading->error) return after_death(*loading->error);
  const std::string& known = event.error().message;
  return after_death(
      {ErrorCode::internal,
       fmt::format("the engine's process has stopped: {}{}", known.empty() ? "" : known + ", ", fate),
       {}});
}

// Returns the event for which the process stopped, or an error if it died. The message is empty if the
// cause is unknown.
Result<EngineEvent> EngineProcess::serve_process() {
  child_ = ChildProcess();
  TRY(child_, begin_process());
  {
    const std::lock_guard lock(mutex_);
    shared_.pid = child_.pid();
  }
  append_frame(child_.socket.out, Hello{.num_blocks = info_.num_blocks, .keeps_cache = kept_.fd() >= 0});
  for (;;) {
    if (!child_.socket.flush()) return failure(ErrorCode::internal, "");
    pollfd fds[] = {{child_.socket.fd(), POLLIN, 0}, {wakeup_.fd(), POLLIN, 0}};
    if (!child_.socket.out.empty()) fds[0].events |= POLLOUT;
    poll(fds, 2, std::max(options_.hung_after_ms / 4, 1));
    if (fds[1].revents != 0) take_commands();
    if (auto event = end_due()) {
      // A process that still loads gets no time: it has no state to save, and does not listen.
      child_.stop(up() != nullptr ? kStopMs : 0);
      return *event;
    }
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) TRY_VOID(receive());
    if (hangs())
      return failure(ErrorCode::internal, "the engine has sent nothing for {} ms", options_.hung_after_ms);
  }
}

Result<ChildProcess> EngineProcess::begin_process() {
  if (options_.meeting) return meet_process();
  std::vector<std::string> command = options_.command;
  std::string weights;
  {
    const std::lock_guard lock(mutex_);
    weights = shared_.weights.path();
  }
  if (!weights.empty()) command.push_back(fmt::format("{}={}", options_.weights_flag, weights));
  if (info_.architecture.empty() && !options_.first_flag.empty()) command.push_back(options_.first_flag);
  if (!options_.keeps_cache) return ChildProcess::start(command, options_.program);
  if (kept_.fd() < 0) TRY_VOID(open_kept());
  static_assert(kKeptMemory == kChildSocket + 1);
  const int shared[] = {kept_.fd()};
  return ChildProcess::start(command, options_.program, shared);
}

Result<> EngineProcess::open_kept() {
  auto opened =
      options_.kept_file.empty() ? SharedMemory::create_unsized() : SharedMemory::of_file(options_.kept_file);
  if (!opened) return field_failure("kv_memory_file", opened.error().code, "{}", opened.error().message);
  kept_ = *std::move(opened);
  return {};
}

// Keeps the file open, because this server holds a lock on it.
void EngineProcess::clear_kept() {
  if (options_.kept_file.empty() || !kept_.clear()) kept_ = SharedMemory();
}

// Waits for the connection of an engine on another host. Requests that have waited for more than
// hung_after_ms end with an error.
Result<ChildProcess> EngineProcess::meet_process() {
  for (const std::int64_t began_us = now_us();;) {
    if (auto connection = options_.meeting->take(options_.number))
      return ChildProcess::of_another_host(FrameSocket(connection->release()));
    pollfd waking{wakeup_.fd(), POLLIN, 0};
    poll(&waking, 1, kMeetMs);
    if (waking.revents != 0) take_commands();
    if (stopping()) return failure(ErrorCode::unavailable, "the engine was stopped");
    if (now_us() - began_us > std::int64_t{options_.hung_after_ms} * 1000)
      requests_.end_all({ErrorCode::unavailable,
                         fmt::format("engine {} on another host is not connected", options_.number),
                         {}});
  }
}

// Returns the event for which the process must end now, or nullopt. For sleep level 1 the process stays,
// and the function sends the command after all earlier ones.
std::optional<EngineEvent> EngineProcess::end_due() {
  const std::lock_guard lock(mutex_);
  if (shared_.stopping) return event::StopRequested{};
  state::Up* const is_up = up();
  if (is_up == nullptr) return std::nullopt;
  if (shared_.weights.begin()) return event::WeightsChosen{};
  if (shared_.load.unloading()) return event::UnloadWanted{};
  const int level = shared_.sleep.due();
  if (level == 0 || shared_.answers > 0 || !shared_.commands.empty()) return std::nullopt;
  if (level == 2) {
    sessions_.cache_emptied();
    shared_.sleep.begin_end();
    return event::FellAsleep{};
  }
  if (is_up->sleep_ordered == 0) {
    is_up->sleep_ordered = shared_.sleep.number();
    sessions_.cache_emptied();
    append_frame(child_.socket.out, Sleep{});
  }
  return std::nullopt;
}

bool EngineProcess::hangs() const {
  const auto* is_up = std::get_if<state::Up>(&state_);
  return is_up != nullptr && now_us() - is_up->received_us > std::int64_t{options_.hung_after_ms} * 1000;
}

// Also ends requests that may have killed the process too often.
EngineEvent EngineProcess::after_death(const Error& death) {
  if (!std::exchange(start_reported_, true)) {
    started_.set_value(std::unexpected(death));
    return event::StopRequested{};
  }
  log_error("{}", death.message);
  {
    const std::lock_guard lock(mutex_);
    if (shared_.weights.revert(death)) return event::Died{.restart = true};
  }
  const state::Up* const was_up = up();
  const bool young =
      was_up != nullptr && now_us() - was_up->since_us < std::int64_t{options_.young_ms} * 1000;
  const auto wait = restarts_.died(was_up != nullptr && (was_up->produced || !young));
  if (!wait) {
    {
      const std::lock_guard lock(mutex_);
      shared_.broken = true;
    }
    end_commands_of_callers(death);
    return event::Died{.restart = false};
  }
  if (was_up != nullptr) requests_.engine_died(death, young);
  std::this_thread::sleep_for(*wait);
  log_warning("restarting the engine");
  return event::Died{.restart = true};
}

EngineEvent EngineProcess::wait_asleep() {
  SleepCycle::Done slept;
  {
    const std::lock_guard lock(mutex_);
    slept = shared_.sleep.ended();
  }
  slept({});
  for (;;) {
    adapters_.end_commands(asleep());
    sessions_.end_commands(asleep());
    wait_for_command();
    const std::lock_guard lock(mutex_);
    if (shared_.stopping) return event::StopRequested{};
    if (shared_.sleep.waking()) return event::Woken{};
  }
}

EngineEvent EngineProcess::wait_unloaded() {
  LoadCycle::Done unloaded;
  {
    const std::lock_guard lock(mutex_);
    unloaded = shared_.load.ended();
  }
  unloaded({});
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (shared_.stopping) return event::StopRequested{};
      if (shared_.load.loading()) {
        shared_.presence = EnginePresence::starting;
        restarts_ = {};
        return event::LoadWanted{};
      }
    }
    // The process ended before it answered these commands.
    if (adapters_.waiting() || sessions_.waiting() || pauses_.waiting()) report_wanted(false);
    wait_for_command();
  }
}

EngineEvent EngineProcess::refuse_requests() {
  const Error failed{ErrorCode::unavailable, "the engine has failed", {}};
  log_error("the engine is not restarted again, because {} starts in a row have failed", restarts_.deaths());
  for (;;) {
    end_all(failed);
    {
      const std::lock_guard lock(mutex_);
      if (shared_.stopping) return event::StopRequested{};
      if (shared_.load.loading()) {
        shared_.broken = false;
        restarts_ = {};
        return event::LoadWanted{};
      }
    }
    wait_for_command();
  }
}

void EngineProcess::wait_for_command() {
  pollfd waking{wakeup_.fd(), POLLIN, 0};
  poll(&waking, 1, -1);
  take_commands();
}

// Ends all sleep(), wake_up() and reload_weights() calls that wait.
void EngineProcess::end_commands_of_callers(const Error& error) {
  std::vector<Done> pending;
  {
    const std::lock_guard lock(mutex_);
    pending = shared_.sleep.give_up();
    if (Done done = shared_.load.give_up()) pending.push_back(std::move(done));
    if (Done done = shared_.weights.give_up()) pending.push_back(std::move(done));
  }
  for (const Done& done : pending) done(std::unexpected(error));
}

void EngineProcess::end_all(const Error& error) {
  adapters_.end_commands(error);
  sessions_.end_commands(error);
  pauses_.end_commands(error);
  requests_.end_all(error);
}

}  // namespace octavo::remote
