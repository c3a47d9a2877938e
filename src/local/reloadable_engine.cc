#include "local/reloadable_engine.h"

#include <utility>

namespace octavo {

ReloadableEngine::ReloadableEngine(Load load, std::shared_ptr<EngineClient> engine)
    : load_(std::move(load)), info_(engine->info()), engine_(std::move(engine)) {}

Result<std::unique_ptr<EngineClient>> ReloadableEngine::start(Load load) {
  TRY(std::shared_ptr<EngineClient> engine, load());
  return std::unique_ptr<EngineClient>(new ReloadableEngine(std::move(load), std::move(engine)));
}

std::shared_ptr<EngineClient> ReloadableEngine::engine() const {
  const std::lock_guard lock(mutex_);
  return engine_;
}

Result<RequestId> ReloadableEngine::submit(Request request, std::shared_ptr<OutputSink> sink) {
  if (const auto awake = engine()) return awake->submit(std::move(request), std::move(sink));
  return failure(ErrorCode::unavailable, "the engine is asleep: wake it up");
}

void ReloadableEngine::abort(RequestId id) {
  if (const auto awake = engine()) awake->abort(id);
}

void ReloadableEngine::reset_prefix_cache() {
  if (const auto awake = engine()) awake->reset_prefix_cache();
}

void ReloadableEngine::command_sessions(SessionCommand command, SessionsDone done) {
  if (const auto awake = engine()) return awake->command_sessions(std::move(command), std::move(done));
  done(failure(ErrorCode::unavailable, "the engine is asleep: wake it up"));
}

void ReloadableEngine::log_state() {
  if (const auto awake = engine()) awake->log_state();
}

void ReloadableEngine::look_at_prefixes() {
  if (const auto awake = engine()) awake->look_at_prefixes();
}

void ReloadableEngine::sleep(int level, Done done) {
  const std::lock_guard lock(changing_);
  const auto awake = engine();
  if (level == 2) {
    if (awake) discard();
    return done({});
  }
  if (!awake) return done(invalid("level", "the engine sleeps at level 2: wake it up first"));
  awake->sleep(level, [this, level, then = std::move(done)](Result<> result) {
    if (result) set_level(level);
    then(std::move(result));
  });
}

void ReloadableEngine::wake_up(Done done) {
  const std::lock_guard lock(changing_);
  if (const auto awake = engine())
    return awake->wake_up([this, then = std::move(done)](Result<> result) {
      if (result) set_level(0);
      then(std::move(result));
    });
  done(reload());
}

void ReloadableEngine::pause(PauseMode mode, Done done) {
  if (const auto awake = engine()) return awake->pause(mode, std::move(done));
  done(failure(ErrorCode::unavailable, "the engine is asleep: wake it up"));
}

void ReloadableEngine::resume() {
  if (const auto awake = engine()) awake->resume();
}

std::vector<EngineStats> ReloadableEngine::stats() const {
  const std::lock_guard lock(mutex_);
  std::vector<EngineStats> all = engine_ ? engine_->stats() : asleep_;
  for (EngineStats& stats : all) stats.condition.sleep_level = sleep_level_;
  return all;
}

void ReloadableEngine::drain() {
  if (const auto awake = engine()) awake->drain();
}

void ReloadableEngine::set_level(int level) {
  const std::lock_guard lock(mutex_);
  sleep_level_ = level;
}

// Waits until no request is unfinished, and destroys the engine.
void ReloadableEngine::discard() {
  auto ending = engine();
  ending->drain();
  std::vector<EngineStats> last = ending->stats();
  for (EngineStats& stats : last) stats.blocks.used = stats.blocks.cached = 0;
  const std::lock_guard lock(mutex_);
  asleep_ = std::move(last);
  sleep_level_ = 2;
  engine_.reset();
}

Result<> ReloadableEngine::reload() {
  TRY(std::shared_ptr<EngineClient> loaded, load_());
  const EngineInfo now = loaded->info();
  if (now.vocab_size != info_.vocab_size || now.max_model_len != info_.max_model_len)
    return field_failure(
        "model", ErrorCode::corrupt,
        "has changed on disk: it has {} tokens and a context of {}, the server started with {} and {}",
        now.vocab_size, now.max_model_len, info_.vocab_size, info_.max_model_len);
  const std::lock_guard lock(mutex_);
  engine_ = std::move(loaded);
  sleep_level_ = 0;
  return {};
}

}  // namespace octavo
