// Data parallelism: one client of several engines with the same model. Each request goes to the engine with
// the least load, or to the engine that it names (Request::engine). Engines can be added and removed at run
// time.
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
  // Starts engine `index` of `count` and returns when it is ready. Any thread.
  using Start = std::function<Result<std::unique_ptr<EngineClient>>(int index, int count)>;
  static constexpr int kEnginesMax = 64;

  // engines: at least one, with consecutive EngineInfo::index. seed: for requests without a seed. more:
  // starts engines for scale(); if empty, the number of engines is fixed. most: maximum number of engines,
  // at most kEnginesMax.
  DataParallelClient(std::vector<std::unique_ptr<EngineClient>> engines, std::uint64_t seed, Start more = {},
                     int most = kEnginesMax);
  // Waits for engines that are starting.
  ~DataParallelClient() override;

  // Starts `count` engines in parallel with start(index, count), each on a separate thread. Errors: the
  // error of the first engine that cannot start.
  static Result<std::vector<std::unique_ptr<EngineClient>>> start(int first, int count, const Start& start);

  // Returns the sums over all engines. The numbers of blocks, the bytes of weights and the limits of a
  // request are those of one engine.
  EngineInfo info() const override;
  // Sends the request to the engine with the lowest 4 x waiting + running answers, as vLLM's internal load
  // balancer does. It skips failed engines while others work, and restarting engines while others are up.
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  void log_state() override;
  // Loads the adapter in all engines, including engines that are added later. When all engines have
  // responded, it reports the first error.
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // Sends the command to all engines, as the following functions do. When all engines have responded, `done`
  // gets the first error.
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
  std::atomic<bool> scaling_ = false;  // whether a scale() is running

  std::mutex adapters_mutex_;                      // guards both members below, and changes of `scaling_`
  std::map<std::string, AdapterSource> adapters_;  // loaded adapters by name
  int adapter_changes_ = 0;

  mutable std::shared_mutex mutex_;  // guards both members below; shared while requests are submitted
  Engines engines_;                  // all engines; those that leave get adapter commands until they end
  std::size_t open_;  // number of engines, from the first on, that accept requests; the others are leaving

  std::mutex scaler_mutex_;
  std::thread scaler_;
};

}  // namespace octavo::remote
