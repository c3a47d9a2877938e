// Data parallelism: a client that distributes requests over several engines with the same model. A request
// goes to the engine with the least load, to the engine of its session, or to the engine in Request::engine.
// Engines can be added and removed at run time.
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

#include "remote/session_places.h"
#include "request/engine_client.h"

namespace octavo::remote {

class DataParallelClient final : public EngineClient {
 public:
  // Starts engine `index` of `count` and returns when it is ready. Any thread may call it.
  using Start = std::function<Result<std::unique_ptr<EngineClient>>(int index, int count)>;
  static constexpr int kEnginesMax = 64;

  // engines: at least one; engine i must have EngineInfo::index i. seed: used for requests without a seed.
  // more: starts engines for scale(); empty: the number of engines is fixed. most: maximum number of engines,
  // at most kEnginesMax.
  DataParallelClient(std::vector<std::unique_ptr<EngineClient>> engines, std::uint64_t seed, Start more = {},
                     int most = kEnginesMax);
  // Waits until all starting engines are ready or have failed.
  ~DataParallelClient() override;

  // Starts engines `first` to `first` + `count` - 1 in parallel, each on a separate thread. Returns the
  // error of the first engine that fails.
  static Result<std::vector<std::unique_ptr<EngineClient>>> start(int first, int count, const Start& start);

  // Returns sums over all engines. The number of blocks, the bytes of weights and the limits of a request are
  // those of one engine.
  EngineInfo info() const override;
  // Sends the request to the engine with the lowest value of 4 x waiting + running sequences, as vLLM's
  // internal load balancer does. Skips failed and restarting engines if other engines are running.
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  void command_sessions(SessionCommand command, SessionsDone done) override;
  void log_state() override;
  // Loads the adapter in all engines, and later in added engines. `done` gets the first error after all
  // engines have responded.
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // The functions below send the command to all engines. `done` gets the first error after all engines have
  // responded.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  // Only one reload may run: two at the same time could leave engines with different weights. If only some
  // engines can load the weights, these load the previous ones again before `done` gets the error.
  void reload_weights(std::string path, Done done) override;
  // Sets the folder or file whose weights the engines loaded at the start. Call it before the first reload.
  void set_weights(std::string path) { weights_ = std::move(path); }
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
  std::size_t place_of(const SessionKey& session);
  bool begins_adapter_change();
  void end_adapter_change(const std::function<void()>& note);
  struct Reload;
  void end_reload(Reload& reload);

  const std::uint64_t seed_;
  const Start start_;
  const int most_;
  std::atomic<std::uint64_t> submitted_ = 0;
  std::atomic<bool> draining_ = false, stopping_ = false;
  std::atomic<bool> scaling_ = false;
  std::atomic<bool> reloading_ = false;
  SessionPlaces sessions_;
  std::string weights_;  // folder or file of the weights in use; only a running reload changes it

  std::mutex adapters_mutex_;  // guards adapters_ and adapter_changes_, and changes of scaling_
  std::map<std::string, AdapterSource> adapters_;
  int adapter_changes_ = 0;

  // Guards engines_ and open_. submit() locks it shared.
  mutable std::shared_mutex mutex_;
  Engines engines_;  // includes engines that are being removed
  // Engines [0, open_) accept requests; the engines after them are being removed.
  std::size_t open_;

  std::mutex scaler_mutex_;
  std::thread scaler_;
};

}  // namespace octavo::remote
