// Data parallelism: one client over several engines that hold the same model. Each request goes to the engine
// with the least to do, or to the one it names (Request::engine).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "request/engine_client.h"

namespace octavo::remote {

class DataParallelClient final : public EngineClient {
 public:
  // engines[i]: of an EngineInfo::index that is i more than the first's; at least one. `seed`: for requests that bring none.
  DataParallelClient(std::vector<std::unique_ptr<EngineClient>> engines, std::uint64_t seed);

  // Starts `count` engines at the same time by start(index), from a thread each. Errors: the first engine's
  // that cannot start.
  static Result<std::unique_ptr<EngineClient>> start(
      int count, std::uint64_t seed, const std::function<Result<std::unique_ptr<EngineClient>>(int)>& start);

  // Of all engines together; blocks, bytes of weights and the limits of one request are those of one engine.
  EngineInfo info() const override;
  // The engine: the lowest of 4 x waiting + running answers, as vLLM's internal load balancer has it. Engines
  // that have failed are left out while others work.
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  // On every engine. The first error is reported, after all have answered.
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // Every engine. The first error is reported, after all have answered.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  std::vector<EngineStats> stats() const override;
  void drain() override;

 private:
  std::size_t least_loaded() const;

  const std::vector<std::unique_ptr<EngineClient>> engines_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> submitted_ = 0;
  std::atomic<bool> draining_ = false;
};

}  // namespace octavo::remote
