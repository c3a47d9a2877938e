// Commands of an Engine that wait: for sessions, sleep() and pause().
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop/engine.h"

namespace octavo {

// Runs some of the waiting commands, so that many clients do not stall the requests. A `list` command takes
// linear time, and an export copies a part of a session, so each of them is the last command of an iteration.
// After a restart, all `restore` commands run before the first request.
void Engine::run_session_commands() {
  constexpr int kMost = 32;
  for (int run = 0; run < kMost && !waiting_.sessions.empty();) {
    const SessionRequest request = std::move(waiting_.sessions.front());
    waiting_.sessions.pop_front();
    const SessionVerb verb = request.command.verb;
    const bool moves = verb == SessionVerb::export_part || verb == SessionVerb::import_part;
    if (moves || (verb == SessionVerb::list && request.command.key.id.empty()))
      run = kMost;
    else if (verb != SessionVerb::restore)
      ++run;
    if (moves && waiting_.cache) {
      request.done(failure(ErrorCode::unavailable, "the engine is asleep"));
      continue;
    }
    request.done(sessions_.command(request.command));
  }
  steps_.forget_blocks(sessions_.take_imported());
}

// Completes pending sleep() calls if no request is unfinished and no transfer uses blocks.
void Engine::fall_asleep() {
  if (answers_.open_count() > 0 || (transfers_ && !transfers_->give_up_all(now_us()))) return;
  empty_cache();
  const Result<> released = executor_->release_cache();
  waiting_.cache = released.has_value();
  if (!released) inbox_.woken();
  end_sleeps(released);
}

// Completes wake_up() calls when the cache has its memory again. If memory is missing, the engine stays
// asleep, because a later call may find more. Returns other errors, after which the engine cannot continue.
Result<> Engine::wake(std::span<const Done> wakes) {
  if (wakes.empty()) return {};
  end_sleeps(failure(ErrorCode::unavailable, "the engine was woken up before it fell asleep"));
  Result<> restored;
  if (waiting_.cache) restored = executor_->restore_cache();
  if (!restored && restored.error().code == ErrorCode::resource_exhausted) {
    const Result<> refused = failure(
        ErrorCode::unavailable,
        "the engine stays asleep, because its KV cache gets no memory: {}; free memory, then wake it again",
        restored.error().message);
    for (const Done& done : wakes) done(refused);
    return {};
  }
  if (restored) {
    waiting_.cache = false;
    inbox_.woken();
  } else {
    log_error("the engine cannot continue: {}", restored.error().message);
  }
  for (const Done& done : wakes) done(restored);
  return restored;
}

void Engine::empty_cache() {
  sessions_.let_go_all();
  scheduler_->reset_prefix_cache();
}

void Engine::end_sleeps(const Result<>& result) {
  for (const Done& done : std::exchange(waiting_.sleeps, {})) done(result);
}

void Engine::begin_pause(Pause&& wanted) {
  if (wanted.mode == PauseMode::abort)
    answers_.for_all(
        [&](AnswerIndex, const Answer& answer) { abort_request(RequestId{answer.accepted->id}); });
  waiting_.pauses.push_back(std::move(wanted));
}

// Completes pending pause() calls if no step is in flight.
void Engine::end_pauses_once_still(bool frozen) {
  if (!inbox_.paused())
    return end_pauses(failure(ErrorCode::unavailable, "the engine was resumed before it paused"));
  if (frozen || answers_.open_count() == 0) end_pauses({});
}

void Engine::end_pauses(const Result<>& result) {
  for (const Pause& wanted : std::exchange(waiting_.pauses, {})) wanted.done(result);
}

}  // namespace octavo
