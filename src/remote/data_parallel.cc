#include "remote/data_parallel.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "request/check_request.h"

namespace octavo::remote {
namespace {

constexpr int kDrainSecondsMax = 86'400;
// Interval at which to check whether an engine to be removed has unfinished requests.
constexpr auto kLook = std::chrono::milliseconds(20);

// Returns a callback that must be called `count` times. The last of these calls passes the first error, or
// success, to `done`.
AdapterDone after_all(std::size_t count, AdapterDone done) {
  struct Answers {
    std::mutex mutex;
    std::size_t missing;
    Result<> first{};
    AdapterDone done;
  };
  auto answers = std::make_shared<Answers>();
  answers->missing = count;
  answers->done = std::move(done);
  return [answers](const Result<>& result) {
    {
      const std::lock_guard lock(answers->mutex);
      if (!result && answers->first) answers->first = result;
      if (--answers->missing > 0) return;
    }
    answers->done(answers->first);
  };
}

// Returns the load of an engine. As in vLLM's DPLBAsyncMPClient, a waiting sequence counts 4 times as much
// as a running one.
std::int64_t load_of(const EngineStats& stats, const EngineInfo& info) {
  const int running = std::min(stats.requests.unfinished, info.max_num_seqs);
  return std::int64_t{4} * (stats.requests.unfinished - running) + running;
}

// Returns a callback that must be called `count` times. The last of these calls passes the sessions of all
// engines to `done`. If all engines have failed, `done` gets an error: not_found only if no engine has the
// session.
SessionsDone after_all_sessions(std::size_t count, SessionsDone done) {
  struct Answers {
    std::mutex mutex;
    std::size_t missing;
    bool any = false;
    std::vector<SessionInfo> sessions{};
    Error error{};
    SessionsDone done;
  };
  auto answers = std::make_shared<Answers>();
  answers->missing = count;
  answers->done = std::move(done);
  return [answers](Result<std::vector<SessionInfo>> result) {
    {
      const std::lock_guard lock(answers->mutex);
      Answers& all = *answers;
      if (result) {
        all.any = true;
        all.sessions.insert(all.sessions.end(), result->begin(), result->end());
      } else if (all.error.message.empty() || all.error.code == ErrorCode::not_found) {
        all.error = result.error();
      }
      if (--all.missing > 0) return;
    }
    if (answers->any) return answers->done(std::move(answers->sessions));
    answers->done(std::unexpected(answers->error));
  };
}

Error changing() {
  return {
      ErrorCode::unavailable, "the number of engines is changing (/is_scaling_elastic_ep): retry later", {}};
}

}  // namespace

DataParallelClient::DataParallelClient(std::vector<std::unique_ptr<EngineClient>> engines, std::uint64_t seed,
                                       Start more, int most)
    : seed_(seed),
      start_(std::move(more)),
      most_(most),
      engines_(std::make_move_iterator(engines.begin()), std::make_move_iterator(engines.end())),
      open_(engines_.size()) {
  CHECK(open_ > 0 && open_ <= static_cast<std::size_t>(kEnginesMax));
}

DataParallelClient::~DataParallelClient() {
  draining_ = stopping_ = true;
  const std::lock_guard lock(scaler_mutex_);
  if (scaler_.joinable()) scaler_.join();
}

Result<std::vector<std::unique_ptr<EngineClient>>> DataParallelClient::start(int first, int count,
                                                                             const Start& start) {
  std::vector<std::future<Result<std::unique_ptr<EngineClient>>>> starting;
  for (int i = 0; i < count; ++i)
    starting.push_back(std::async(std::launch::async,
                                  [&start, i, first, all = first + count] { return start(first + i, all); }));
  for (const auto& one : starting) one.wait();
  std::vector<std::unique_ptr<EngineClient>> engines;
  for (auto& one : starting) {
    TRY(engines.emplace_back(), one.get());
  }
  return engines;
}

DataParallelClient::Engines DataParallelClient::engines() const {
  const std::shared_lock lock(mutex_);
  return engines_;
}

EngineInfo DataParallelClient::info() const {
  const std::shared_lock lock(mutex_);
  EngineInfo info = engines_.front()->info();
  const int count = static_cast<int>(open_);
  info.engines = count;
  info.max_num_seqs *= count;
  info.max_queued *= count;
  return info;
}

// Returns the engine with the least load. Engines with equal load take turns. mutex_ must be locked.
std::size_t DataParallelClient::least_loaded() const {
  const std::size_t first = submitted_ % open_;
  std::size_t best = first;
  auto least = std::pair(EnginePresence::away, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < open_; ++i) {
    const std::size_t at = (first + i) % open_;
    const EngineStats stats = engines_[at]->stats().front();
    if (!stats.condition.healthy) continue;
    if (const auto load = std::pair(stats.condition.presence, load_of(stats, engines_[at]->info()));
        load < least) {
      best = at;
      least = load;
    }
  }
  return best;
}

// Returns the engine that has the session's blocks. If the engine is unknown or down, or has more than 2 x
// max_num_seqs unfinished sequences, returns the engine with the least load. mutex_ must be locked.
std::size_t DataParallelClient::place_of(const SessionKey& session) {
  if (const auto known = sessions_.find(session); known && *known < open_) {
    const EngineStats stats = engines_[*known]->stats().front();
    const int running = engines_[*known]->info().max_num_seqs;
    if (stats.condition.healthy && stats.condition.presence == EnginePresence::up &&
        stats.requests.unfinished <= 2 * running)
      return *known;
  }
  const std::size_t at = least_loaded();
  sessions_.set(session, at);
  return at;
}

// Makes the engine's request id unique among all engines: the index of the engine becomes the last digit in
// base kEnginesMax.
Result<RequestId> DataParallelClient::submit(Request request, std::shared_ptr<OutputSink> sink) {
  TRY_VOID(check_request(request, info()));
  if (draining_) return failure(ErrorCode::unavailable, "the engines are shutting down");
  const std::shared_lock lock(mutex_);
  std::size_t at = request.session && !request.engine ? place_of(request.session->key) : least_loaded();
  if (request.engine) {
    at = static_cast<std::size_t>(*request.engine - engines_.front()->info().index);
    if (at >= open_) return failure(ErrorCode::unavailable, "engine {} is shutting down", *request.engine);
    if (request.session) sessions_.set(request.session->key, at);
  }
  const std::uint64_t number = ++submitted_;
  // The counter is common to all engines. Otherwise, two engines would use the same random numbers.
  if (!request.entropy) request.entropy = random_bits(seed_, number);
  request.engine.reset();
  TRY(const RequestId id, engines_[at]->submit(std::move(request), std::move(sink)));
  return id * kEnginesMax + at;
}

void DataParallelClient::abort(RequestId id) {
  const Engines all = engines();
  if (const std::size_t at = id % kEnginesMax; at < all.size()) all[at]->abort(id / kEnginesMax);
}

void DataParallelClient::reset_prefix_cache() {
  for (const auto& engine : engines()) engine->reset_prefix_cache();
}

void DataParallelClient::command_sessions(SessionCommand command, SessionsDone done) {
  const Engines all = engines();
  const auto known = sessions_.find(command.key);
  const bool adds = command.verb == SessionVerb::pin || command.verb == SessionVerb::retain ||
                    command.verb == SessionVerb::fork;
  if (known && *known < all.size() && adds) {
    if (command.verb == SessionVerb::fork) sessions_.set({command.key.owner, command.fork_id}, *known);
    return all[*known]->command_sessions(std::move(command), std::move(done));
  }
  if (command.verb == SessionVerb::import_part) {
    const std::shared_lock lock(mutex_);
    std::size_t at = known && *known < open_ ? *known : place_of(command.key);
    if (command.engine) {
      at = static_cast<std::size_t>(*command.engine - engines_.front()->info().index);
      if (at >= open_)
        return done(failure(ErrorCode::unavailable, "engine {} is shutting down", *command.engine));
      sessions_.set(command.key, at);
    }
    return engines_[at]->command_sessions(std::move(command), std::move(done));
  }
  const SessionsDone one = after_all_sessions(all.size(), std::move(done));
  for (const auto& engine : all) engine->command_sessions(command, one);
}

void DataParallelClient::log_state() {
  for (const auto& engine : engines()) engine->log_state();
}

void DataParallelClient::look_at_prefixes() {
  for (const auto& engine : engines()) engine->look_at_prefixes();
}

// Returns false while engines are being added, because an engine loads only the adapters that exist when it
// starts.
bool DataParallelClient::begins_adapter_change() {
  const std::lock_guard lock(adapters_mutex_);
  if (scaling_) return false;
  ++adapter_changes_;
  return true;
}

void DataParallelClient::end_adapter_change(const std::function<void()>& note) {
  const std::lock_guard lock(adapters_mutex_);
  --adapter_changes_;
  note();
}

void DataParallelClient::load_adapter(AdapterSource source, AdapterDone done) {
  if (!begins_adapter_change()) return done(std::unexpected(changing()));
  const Engines all = engines();
  const AdapterDone one =
      after_all(all.size(), [this, source, done = std::move(done)](const Result<>& result) {
        end_adapter_change([&] {
          if (result) adapters_[source.name] = source;
        });
        done(result);
      });
  for (const auto& engine : all) engine->load_adapter(source, one);
}

void DataParallelClient::unload_adapter(std::string name, AdapterDone done) {
  if (!begins_adapter_change()) return done(std::unexpected(changing()));
  const Engines all = engines();
  const AdapterDone one = after_all(all.size(), [this, name, done = std::move(done)](const Result<>& result) {
    end_adapter_change([&] { adapters_.erase(name); });
    done(result);
  });
  for (const auto& engine : all) engine->unload_adapter(name, one);
}

void DataParallelClient::sleep(int level, Done done) {
  if (scaling_) return done(std::unexpected(changing()));
  const Engines all = engines();
  const Done one = after_all(all.size(), std::move(done));
  for (const auto& engine : all) engine->sleep(level, one);
}

void DataParallelClient::wake_up(Done done) {
  const Engines all = engines();
  const Done one = after_all(all.size(), std::move(done));
  for (const auto& engine : all) engine->wake_up(one);
}

void DataParallelClient::pause(PauseMode mode, Done done) {
  if (scaling_) return done(std::unexpected(changing()));
  const Engines all = engines();
  const Done one = after_all(all.size(), std::move(done));
  for (const auto& engine : all) engine->pause(mode, one);
}

void DataParallelClient::resume() {
  for (const auto& engine : engines()) engine->resume();
}

struct DataParallelClient::Reload {
  std::string path;
  Done done;
  Result<> result{};
  std::mutex mutex;                    // guards the member below while engines load
  std::vector<std::size_t> changed{};  // indices of the engines that have loaded the new weights
};

// If engines can be added, returns an error: a later engine would load the weights of the command line.
void DataParallelClient::reload_weights(std::string path, Done done) {
  if (start_) return EngineClient::reload_weights(std::move(path), std::move(done));
  // Engines cannot reload any more when the destructor has begun to end them. A callback of an ended reload
  // may still call this function.
  if (draining_) return done(failure(ErrorCode::unavailable, "the engines are shutting down"));
  if (reloading_.exchange(true))
    return done(failure(ErrorCode::unavailable, "a reload of the weights is already running"));
  const auto reload = std::make_shared<Reload>();
  reload->path = path;
  reload->done = std::move(done);
  const Engines all = engines();
  const Done one = after_all(all.size(), [this, reload](const Result<>& result) {
    reload->result = result;
    end_reload(*reload);
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i]->reload_weights(path, [reload, i, one](const Result<>& result) {
      if (result) {
        const std::lock_guard lock(reload->mutex);
        reload->changed.push_back(i);
      }
      one(result);
    });
}

// Called when all engines have ended their reload.
void DataParallelClient::end_reload(Reload& reload) {
  const auto end = [this, done = std::move(reload.done), result = reload.result] {
    reloading_ = false;
    done(result);
  };
  if (reload.result && !reload.path.empty()) weights_ = reload.path;
  if (reload.result || reload.changed.empty() || reload.path.empty()) return end();
  const Done restored = after_all(reload.changed.size(), [end](const Result<>& result) {
    if (!result)
      log_error("engines use different weights: {}: reload the weights, or restart the server",
                result.error().message);
    end();
  });
  const Engines all = engines();
  for (const std::size_t i : reload.changed) all[i]->reload_weights(weights_, restored);
}

Result<> DataParallelClient::check_scale(int engines, int drain_s) const {
  if (!start_)
    return field_failure("new_data_parallel_size", ErrorCode::unsupported,
                         "needs a server with --enable-elastic-ep");
  if (engines < 1 || engines > most_)
    return invalid("new_data_parallel_size", "must be from 1 to {} (--elastic-ep-max-dp-size), got {}", most_,
                   engines);
  if (drain_s < 0 || drain_s > kDrainSecondsMax)
    return invalid("drain_timeout", "must be from 0 to {} seconds, got {}", kDrainSecondsMax, drain_s);
  for (const EngineStats& one : stats())
    if (one.condition.sleep_level != 0 || one.condition.paused)
      return failure(ErrorCode::unavailable,
                     "engine {} {}: the number of engines can only change while all engines serve",
                     one.engine, one.condition.paused ? "is paused" : "sleeps");
  if (draining_) return failure(ErrorCode::unavailable, "the engines are shutting down");
  return {};
}

void DataParallelClient::scale(int engines, int drain_s, Done done) {
  const Result<> begun = [&]() -> Result<> {
    const std::lock_guard lock(adapters_mutex_);
    if (scaling_) return std::unexpected(changing());
    if (adapter_changes_ > 0)
      return failure(ErrorCode::unavailable, "adapters are being loaded or unloaded: retry later");
    scaling_ = true;
    return {};
  }();
  if (!begun) return done(begun);
  if (const Result<> fine = check_scale(engines, drain_s); !fine) {
    scaling_ = false;
    return done(fine);
  }
  const std::lock_guard lock(scaler_mutex_);
  // The thread has finished (draining_ and scaling_ ensure it), so join() does not wait.
  if (scaler_.joinable()) scaler_.join();
  scaler_ = std::thread([this, engines, drain_s, done = std::move(done)] {
    const int now = info().engines;
    const std::int64_t began = now_us();
    Result<> result;
    if (engines > now) result = grow(now, engines);
    if (engines < now) shrink(engines, drain_s);
    log_info("the number of engines is now {} (before: {}), after {:.1f} s{}", info().engines, now,
             static_cast<double>(now_us() - began) * 1e-6, result ? "" : ": " + result.error().message);
    scaling_ = false;
    done(result);
  });
}

// Adds all new engines, or none of them after an error.
Result<> DataParallelClient::grow(int from, int to) {
  TRY(std::vector<std::unique_ptr<EngineClient>> more, start(from, to - from, start_));
  std::map<std::string, AdapterSource> adapters;
  {
    const std::lock_guard lock(adapters_mutex_);
    adapters = adapters_;
  }
  for (const auto& engine : more)
    for (const auto& [name, source] : adapters) {
      std::promise<Result<>> loaded;
      engine->load_adapter(source, [&](Result<> result) { loaded.set_value(std::move(result)); });
      TRY_VOID(loaded.get_future().get());
    }
  const std::unique_lock lock(mutex_);
  for (auto& engine : more) engines_.push_back(std::move(engine));
  open_ = engines_.size();
  return {};
}

void DataParallelClient::shrink(int to, int drain_s) {
  const std::int64_t until = now_us() + std::int64_t{drain_s} * 1'000'000;
  Engines leaving;
  {
    const std::unique_lock lock(mutex_);
    open_ = static_cast<std::size_t>(to);
    leaving.assign(engines_.begin() + to, engines_.end());
  }
  const auto busy = [](const auto& engine) { return engine->stats().front().requests.unfinished > 0; };
  while (std::ranges::any_of(leaving, busy) && now_us() < until && !stopping_)
    std::this_thread::sleep_for(kLook);
  for (const auto& engine : leaving)
    if (const int left = engine->stats().front().requests.unfinished; left > 0)
      log_warning("engine {} stops after {} s with {} unfinished answers", engine->info().index, drain_s,
                  left);
  {
    const std::unique_lock lock(mutex_);
    engines_.resize(open_);
  }
  // Waits until no other thread uses the engine, because its destructor must run on this thread.
  for (const auto& engine : leaving)
    while (engine.use_count() > 1) std::this_thread::sleep_for(kLook);
}

std::vector<EngineStats> DataParallelClient::stats() const {
  std::vector<EngineStats> all;
  for (const auto& engine : engines()) all.push_back(std::move(engine->stats().front()));
  return all;
}

void DataParallelClient::drain() {
  draining_ = true;
  {
    const std::lock_guard lock(scaler_mutex_);
    if (scaler_.joinable()) scaler_.join();
  }
  for (const auto& engine : engines()) engine->drain();
}

}  // namespace octavo::remote
