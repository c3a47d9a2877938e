#include "remote/engine_process.h"

#include <utility>

#include "base/clock.h"
#include "base/processors.h"
#include "request/check_request.h"

namespace octavo::remote {
namespace {

Error away() { return {ErrorCode::unavailable, "the engine waits for its ranks on other hosts", {}}; }

Error no_process() { return {ErrorCode::unavailable, "the engine is unloaded", {}}; }

}  // namespace

Error stopped() { return {ErrorCode::unavailable, "the engine was stopped", {}}; }

Error asleep() { return {ErrorCode::unavailable, "the engine is asleep; POST /wake_up wakes it", {}}; }

EngineProcess::EngineProcess(EngineProcessOptions options)
    : options_(std::move(options)),
      requests_([this](int answers) {
        const std::lock_guard lock(mutex_);
        shared_.answers -= answers;
        if (shared_.answers == 0) emptied_.notify_all();
      }),
      sessions_(options_.sessions) {
  requests_.tell_turns([this](const Request& request, std::vector<TokenId> text, std::int64_t arrived_us) {
    sessions_.turn_ended(request, std::move(text), arrived_us, now_us());
  });
}

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(EngineProcessOptions options,
                                                            const std::function<Result<>()>& meanwhile) {
  std::unique_ptr<EngineProcess> process(new EngineProcess(std::move(options)));
  if (process->options_.keeps_cache && !process->options_.meeting) TRY_VOID(process->open_kept());
  auto started = process->started_.get_future();
  process->thread_ = std::thread([p = process.get()] {
    shorten_slice();
    p->run();
  });
  {
    const std::stop_callback stop(process->options_.stop, [p = process.get()] { p->end_process(); });
    if (meanwhile) TRY_VOID(meanwhile());
    TRY_VOID(started.get());
  }
  // The stop may have come just after the process was ready.
  if (process->stopping()) return std::unexpected(stopped());
  return process;
}

void EngineProcess::end_process() {
  {
    const std::lock_guard lock(mutex_);
    shared_.closed = shared_.stopping = true;
  }
  wakeup_.wake();
}

EngineProcess::~EngineProcess() {
  end_process();
  if (thread_.joinable()) thread_.join();
}

Result<> EngineProcess::Shared::usable() const {
  if (broken || closed) return failure(ErrorCode::unavailable, "the engine has failed or is shutting down");
  return {};
}

Result<RequestId> EngineProcess::submit(Request request, std::shared_ptr<OutputSink> sink) {
  TRY_VOID(check_request(request, info_));
  const int answers = request.answers();
  const int most = info_.max_num_seqs + info_.max_queued;
  RequestId id = 0;
  bool loaded = true;
  {
    const std::lock_guard lock(mutex_);
    if (shared_.broken) return failure(ErrorCode::unavailable, "the engine has failed");
    if (shared_.closed) return failure(ErrorCode::unavailable, "the engine is shutting down");
    if (!shared_.sleep.awake()) return std::unexpected(asleep());
    if (shared_.presence == EnginePresence::away) return std::unexpected(away());
    if (answers > most)
      return invalid("n", "this engine can have at most {} unfinished answers, but the request needs {}",
                     most, answers);
    if (shared_.answers + answers > most)
      return failure(ErrorCode::resource_exhausted,
                     "{} answers are unfinished, and the limit is {} (--max-num-seqs and "
                     "--max-num-queued-reqs): retry later",
                     shared_.answers, most);
    shared_.answers += answers;
    id = ++shared_.last_id;
    shared_.commands.emplace_back(Accepted{id, std::move(request), std::move(sink), now_us()});
    loaded = shared_.load.loaded();
  }
  wakeup_.wake();
  report_wanted(loaded);
  return id;
}

// The caller must not hold mutex_. loaded: whether the engine was loaded when the caller queued its request
// or command.
void EngineProcess::report_wanted(bool loaded) const {
  if (!loaded && options_.wanted) options_.wanted();
}

void EngineProcess::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    shared_.commands.push_back(std::move(command));
  }
  wakeup_.wake();
}

void EngineProcess::abort(RequestId id) { post(Abort{id}); }

void EngineProcess::reset_prefix_cache() { post(ResetPrefixCache{}); }

void EngineProcess::look_at_prefixes() { post(LookAtPrefixes{}); }

void EngineProcess::log_state() { post(LogState{}); }

void EngineProcess::command_sessions(SessionCommand command, SessionsDone done) {
  bool loaded = true;
  const Result<> usable = [&]() -> Result<> {
    const std::lock_guard lock(mutex_);
    TRY_VOID(shared_.usable());
    if (shared_.sleep.wanted_level() == 2) return std::unexpected(asleep());
    shared_.commands.emplace_back(SessionsCommand{std::move(command), std::move(done)});
    loaded = shared_.load.loaded();
    return {};
  }();
  if (!usable) return done(std::unexpected(usable.error()));
  wakeup_.wake();
  report_wanted(loaded);
}

void EngineProcess::load_adapter(AdapterSource source, AdapterDone done) {
  change_adapter({.source = std::move(source)}, std::move(done));
}

void EngineProcess::unload_adapter(std::string name, AdapterDone done) {
  change_adapter({.source = {.name = std::move(name), .path = {}}, .unload = true}, std::move(done));
}

void EngineProcess::change_adapter(ChangeAdapter change, AdapterDone done) {
  bool loaded = true;
  const bool no_process = [&] {
    const std::lock_guard lock(mutex_);
    const bool none = shared_.sleep.wanted_level() == 2;
    if (!none) shared_.commands.emplace_back(AdapterCommand{std::move(change), std::move(done)});
    loaded = shared_.load.loaded();
    return none;
  }();
  if (no_process) return done(std::unexpected(asleep()));
  wakeup_.wake();
  report_wanted(loaded);
}

void EngineProcess::sleep(int level, Done done) {
  const auto refusal = [&]() -> Result<> {
    if (level != 1 && level != 2) return invalid("level", "must be 1 or 2, got {}", level);
    // With shared experts, other engines need the experts in this process, so the process must not end.
    if (level == 2 && options_.shares_experts)
      return field_failure("level", ErrorCode::unsupported,
                           "must be 1 for engines that share experts, got 2");
    const std::lock_guard lock(mutex_);
    TRY_VOID(shared_.usable());
    if (!shared_.load.loaded()) return std::unexpected(no_process());
    return shared_.sleep.sleep(level, std::move(done));
  }();
  if (!refusal) return done(refusal);
  wakeup_.wake();
}

void EngineProcess::wake_up(Done done) {
  const auto wake = [&]() -> Result<SleepCycle::Wake> {
    const std::lock_guard lock(mutex_);
    TRY_VOID(shared_.usable());
    TRY(SleepCycle::Wake woken, shared_.sleep.wake(std::move(done)));
    if (woken.notify_engine) shared_.commands.emplace_back(WakeUp{});
    return woken;
  }();
  wakeup_.wake();
  if (!wake) return done(std::unexpected(wake.error()));
  if (wake->cancelled)
    wake->cancelled(failure(ErrorCode::unavailable, "the engine was woken up before it fell asleep"));
  if (!wake->waits) done({});
}

void EngineProcess::unload(Done done) {
  const auto refusal = [&]() -> Result<> {
    const std::lock_guard lock(mutex_);
    TRY_VOID(shared_.usable());
    if (!shared_.sleep.awake()) return std::unexpected(asleep());
    return shared_.load.unload(std::move(done));
  }();
  if (!refusal) return done(refusal);
  wakeup_.wake();
}

void EngineProcess::load(Done done) {
  const auto refusal = [&]() -> Result<> {
    const std::lock_guard lock(mutex_);
    if (shared_.closed) return failure(ErrorCode::unavailable, "the engine is shutting down");
    return shared_.load.load(std::move(done));
  }();
  if (!refusal) return done(refusal);
  wakeup_.wake();
}

void EngineProcess::drop_kept_cache() { post(DropKeptCache{}); }

void EngineProcess::pause(PauseMode mode, Done done) {
  const Result<> usable = [&]() -> Result<> {
    const std::lock_guard lock(mutex_);
    TRY_VOID(shared_.usable());
    if (!shared_.load.loaded()) return std::unexpected(no_process());
    shared_.paused = true;
    shared_.commands.emplace_back(PauseCommand{mode, std::move(done)});
    return {};
  }();
  if (!usable) return done(usable);
  wakeup_.wake();
}

void EngineProcess::resume() {
  {
    const std::lock_guard lock(mutex_);
    shared_.paused = false;
  }
  post(Resume{});
}

void EngineProcess::reload_weights(std::string path, Done done) {
  const auto refusal = [&]() -> Result<> {
    if (options_.weights_flag.empty())
      return failure(ErrorCode::unsupported, "this engine cannot replace its weights");
    if (!path.empty() && options_.check_weights) TRY_VOID(options_.check_weights(path));
    const std::lock_guard lock(mutex_);
    TRY_VOID(shared_.usable());
    if (!shared_.sleep.awake()) return std::unexpected(asleep());
    if (!shared_.load.loaded()) return std::unexpected(no_process());
    return shared_.weights.choose(std::move(path), std::move(done));
  }();
  if (!refusal) return done(refusal);
  wakeup_.wake();
}

std::vector<EngineStats> EngineProcess::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = shared_.stats;
  stats.engine = info_.index;
  stats.requests.unfinished = shared_.answers;
  stats.condition.healthy = !shared_.broken;
  stats.condition.presence = shared_.presence;
  stats.condition.sleep_level = shared_.sleep.reached_level();
  stats.condition.paused = shared_.paused;
  return {stats};
}

void EngineProcess::drain() {
  std::unique_lock lock(mutex_);
  shared_.closed = true;
  emptied_.wait(lock, [&] { return shared_.answers == 0; });
}

pid_t EngineProcess::pid() const {
  const std::lock_guard lock(mutex_);
  return shared_.pid;
}

bool EngineProcess::stopping() const {
  const std::lock_guard lock(mutex_);
  return shared_.stopping;
}

}  // namespace octavo::remote
