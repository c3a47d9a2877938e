// An engine that forwards all calls to another engine and records its finished requests (record_log.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "record/record_log.h"
#include "request/engine_client.h"

namespace octavo {

struct RecordedEngine {
  EngineIdentity identity;
  std::uint64_t seed = 0;  // seed for requests that have no seed
  bool media = false;      // see recorded_request()
  std::function<std::string(const std::string& path)> adapter_of;
};

class RecordingEngine final : public EngineClient {
 public:
  RecordingEngine(std::unique_ptr<EngineClient> engine, std::unique_ptr<RecordLog> log,
                  RecordedEngine recorded);
  ~RecordingEngine() override;

  EngineInfo info() const override { return engine_->info(); }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override { engine_->abort(id); }
  void reset_prefix_cache() override { engine_->reset_prefix_cache(); }
  void look_at_prefixes() override { engine_->look_at_prefixes(); }
  void command_sessions(SessionCommand command, SessionsDone done) override {
    engine_->command_sessions(std::move(command), std::move(done));
  }
  void log_state() override { engine_->log_state(); }
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override {
    engine_->unload_adapter(std::move(name), std::move(done));
  }
  void sleep(int level, Done done) override { engine_->sleep(level, std::move(done)); }
  void wake_up(Done done) override { engine_->wake_up(std::move(done)); }
  void unload(Done done) override { engine_->unload(std::move(done)); }
  void load(Done done) override { engine_->load(std::move(done)); }
  void drop_kept_cache() override { engine_->drop_kept_cache(); }
  void pause(PauseMode mode, Done done) override { engine_->pause(mode, std::move(done)); }
  void resume() override { engine_->resume(); }
  void reload_weights(std::string path, Done done) override;
  std::vector<EngineStats> stats() const override { return engine_->stats(); }
  void drain() override { engine_->drain(); }
  void scale(int engines, int drain_s, Done done) override {
    engine_->scale(engines, drain_s, std::move(done));
  }
  bool scaling() const override { return engine_->scaling(); }

 private:
  class Sink;

  EngineIdentity identity() const;
  void set_weights(std::string weights);

  const RecordedEngine recorded_;
  // must outlive engine_, because the engine's last outputs are recorded too
  const std::unique_ptr<RecordLog> log_;
  mutable std::mutex mutex_;
  EngineIdentity identity_;
  std::map<std::string, std::string, std::less<>> adapters_;
  std::uint64_t submitted_ = 0;
  std::unique_ptr<EngineClient> engine_;
};

}  // namespace octavo
