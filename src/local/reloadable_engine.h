// An engine in this process that can free all its memory: sleep() at level 2 destroys it, and wake_up()
// loads it again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "request/engine_client.h"

namespace octavo {

class ReloadableEngine final : public EngineClient {
 public:
  using Load = std::function<Result<std::unique_ptr<EngineClient>>()>;

  // Calls `load` now, and again in wake_up().
  static Result<std::unique_ptr<EngineClient>> start(Load load);

  // Info of the first load. Later loads must have the same limits.
  EngineInfo info() const override { return info_; }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  void command_sessions(SessionCommand command, SessionsDone done) override;
  void log_state() override;
  // sleep() and wake_up() block. Level 1 is passed to the engine.
  void sleep(int level, Done done) override;
  // `done` gets an error if `load` fails, or if the limits of the new engine differ.
  void wake_up(Done done) override;
  // Affects the current engine. An engine that is loaded later is not paused.
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  std::vector<EngineStats> stats() const override;
  void drain() override;

 private:
  ReloadableEngine(Load load, std::shared_ptr<EngineClient> engine);

  // Returns null during a sleep at level 2.
  std::shared_ptr<EngineClient> engine() const;
  void set_level(int level);
  void discard();
  Result<> reload();

  const Load load_;
  const EngineInfo info_;
  std::mutex changing_;  // held during sleep() and wake_up()
  mutable std::mutex mutex_;
  int sleep_level_ = 0;
  std::vector<EngineStats> asleep_;  // stats() while no engine is loaded
  std::shared_ptr<EngineClient> engine_;
};

}  // namespace octavo
