// The models of one server. Each model has a Runtime (tokenizer, template, Service) from its first load on,
// and an engine process while it is loaded. The arbiter decides; this class carries out its actions.
//
// Requests of a model that is not loaded wait in two places. Before the first load, the limits of the model
// are unknown, so the callbacks of service_of() wait here. Later, requests are checked at once, and wait in
// the EngineProcess.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "local/runtime.h"
#include "many/arbiter.h"

namespace octavo::many {

struct ModelSource {
  std::vector<std::string> names{};  // served names, then adapters; the first identifies the model
  std::size_t served = 1;            // number of served names in `names`
  RuntimeOptions options{};          // with the path of the model
  ModelRules rules{};
  bool preload = false;  // whether to load the model when the server starts
};

struct ModelStatus {
  std::string state{};  // unloaded, loading, loaded, unloading or failed
  std::string error{};  // why the last load failed; "": it did not
  Arbiter::Model model{};
  int unfinished = 0;         // number of unfinished answers
  std::int64_t last_use = 0;  // seconds since 1970; 0: never
  std::int64_t loads = 0, unloads = 0;
  double load_seconds = 0;  // time of all loads together
};

// A request or command of a client that may wait for a load.
struct Call {
  // set by ModelTable::cancel(); null: the call cannot be cancelled
  std::shared_ptr<std::atomic<bool>> cancelled{};
  std::int64_t deadline_us = 0;  // 0: none
  std::int64_t bytes = 0;        // of the request's body
};

class ModelTable {
 public:
  // Maximum bytes of the bodies of all requests that wait for a first load. Half of the budget of all bodies
  // (http::ServerOptions), so that the other models still get requests.
  static constexpr std::int64_t kWaitingBytesMax = std::int64_t{256} << 20;

  using Done = EngineClient::Done;
  using Ready = std::function<void(Result<std::shared_ptr<Service>>)>;

  // Starts to load the models with `preload`. Returns an error if a model cannot fit into the memory.
  static Result<std::shared_ptr<ModelTable>> open(ArbiterRules rules, std::vector<ModelSource> sources,
                                                  std::int64_t waiting_bytes_max = kWaitingBytesMax);
  ~ModelTable();

  std::size_t size() const { return entries_.size(); }
  const ModelSource& source(std::size_t model) const { return entries_[model].source; }
  // Finds a model by a served name or the name of an adapter.
  std::optional<std::size_t> find(std::string_view name) const;

  // Calls `ready` with the service of the model: at once, or after the first load, on any thread. Requests to
  // the service load the model.
  void service_of(std::size_t model, const Call& call, Ready ready);
  // Returns the service if the model was loaded before, otherwise null.
  std::shared_ptr<Service> service(std::size_t model) const;

  // Loads the model. Calls `done` when it is loaded.
  void load(std::size_t model, const Call& call, Done done);
  // The client of the call has disconnected. Forgets the call, without calling its function, and does not
  // begin a first load that no other call waits for.
  void cancel(std::size_t model, const std::shared_ptr<std::atomic<bool>>& call);
  // Unloads the model when it has had no requests for this time. 0: now, or after its requests; negative:
  // never. Applies until the model is unloaded, in place of its idle timeout. Pinned models stay.
  void keep(std::size_t model, std::int64_t keep_us);
  // Unloads the model. Calls `done` when its memory is free, or with an error if the model is not loaded or
  // has unfinished requests.
  void unload(std::size_t model, Done done);

  std::vector<ModelStatus> status() const;
  std::int64_t used_bytes() const;
  std::int64_t memory_bytes() const;

  // Ends all first loads, and the calls that wait for them, with an error.
  void end_first_loads();
  // Ends all waiting calls with an error, and starts no more loads.
  void stop();

 private:
  // a call that waits for a load
  struct Waiter {
    Done done;
    Call call{};
  };
  struct Entry {
    ModelSource source;
    std::unique_ptr<Runtime> runtime{};  // null before the first load
    std::shared_ptr<Service> service{};  // service of `runtime`
    std::thread loader{};                // thread of the first load
    bool broken = false;  // the engine has failed, or its last load has; the next load starts it again
    std::vector<Waiter> waiting{};
    std::vector<Done> unload_waiting{};
    std::int64_t deadline_us = 0;  // earliest deadline of requests that may reach the engine; 0: none
    std::string error{};
    std::int64_t refused_until_us = 0;  // requests get `error` until then
    std::int64_t loads = 0, unloads = 0;
    double load_seconds = 0;
  };

  ModelTable(Arbiter arbiter, std::vector<ModelSource> sources, std::int64_t waiting_bytes_max);
  Result<> wait_for_load(std::size_t model, const Call& call, Done done);
  void withdraw_first_load(std::size_t model);
  void run();
  void observe_requests();
  void perform(const Action& action);
  void first_load(std::size_t model);
  void wanted(std::size_t model);
  void loaded(std::size_t model, const Result<>& result);
  void unloaded(std::size_t model, const Result<>& result);
  std::vector<std::pair<Done, Error>> take_ended();
  std::vector<std::shared_ptr<Service>> stranded() const;
  EngineClient& engine(std::size_t model) { return *entries_[model].runtime->engine; }

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  bool stopping_ = false;
  const std::int64_t waiting_bytes_max_;
  std::stop_source first_loads_;  // stopped: no first load may begin or continue
  Arbiter arbiter_;
  std::vector<Entry> entries_;
  std::thread thread_;
};

}  // namespace octavo::many
