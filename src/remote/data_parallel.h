// Data parallelism: one client over several engines that hold the same model. Each request goes to the engine
// with the least to do, or to the one it names (Request::engine). Engines can come and go while they serve.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "request/engine_client.h"

namespace octavo::remote {

class DataParallelClient final : public EngineClient {
 public:
  // Starts engine `index` of `count`, and returns when it is ready; from any thread.
  using Start = std::function<Result<std::unique_ptr<EngineClient>>(int index, int count)>;
  static constexpr int kEnginesMax = 64;

  // engines[i]: of an EngineInfo::index that is i more than the first's; at least one. `seed`: for requests
  // that bring none. `more`: for scale(); empty: their number does not change. most: of them, at most
  // kEnginesMax.
  DataParallelClient(std::vector<std::unique_ptr<EngineClient>> engines, std::uint64_t seed, Start more = {},
                     int most = kEnginesMax);
  // Waits for engines that are being started.
  ~DataParallelClient() override;

  // Starts `count` engines at the same time by start(index, count), from a thread each. Errors: the first
  // engine's that cannot start.
  static Result<std::vector<std::unique_ptr<EngineClient>>> start(int first, int count, const Start& start);

  // Of all engines together; blocks, bytes of weights and the limits of one request are those of one engine.
  EngineInfo info() const override;
  // The engine: the lowest of 4 x waiting + running answers, as vLLM's internal load balancer has it. Engines
  // that have failed are left out while others work, and those that are being started again while others are
  // up.
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  // On every engine, and on those that come later. The first error is reported, after all have answered.
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // Every engine. The first error is reported, after all have answered.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  void reload_weights(std::string path, Done done) override;
  void scale(int engines, int drain_s, Done done) override;
  bool scaling() const override { return scaling_; }
  std::vector<EngineStats> stats() const override;
  void drain() override;

 private:
  using Engines = std::vector<std::shared_ptr<EngineClient>>;

  Engines engines() const;
  Result<> check_scale(int engines, int drain_s) const;
  Result<> grow(int from, int to);
  void shrink(int to, int drain_s);
  std::size_t least_loaded() const;
  bool begins_adapter_change();
  void end_adapter_change(const std::function<void()>& note);

  const std::uint64_t seed_;
  const Start start_;
  const int most_;
  std::atomic<std::uint64_t> submitted_ = 0;
  std::atomic<bool> draining_ = false, stopping_ = false;
  std::atomic<bool> scaling_ = false;  // from when it is asked for until `done` hears

  std::mutex adapters_mutex_;                      // guards these two, and `scaling_` while adapters change
  std::map<std::string, AdapterSource> adapters_;  // loaded, by name
  int adapter_changes_ = 0;                        // not answered yet

  mutable std::shared_mutex mutex_;  // guards these two; shared by who submits
  Engines engines_;                  // answer for adapters until they end
  std::size_t open_;                 // the first ones; the others leave, and take no requests

  std::mutex scaler_mutex_;
  std::thread scaler_;
};

}  // namespace octavo::remote
