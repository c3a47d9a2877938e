#include "many/model_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/size_text.h"
#include "serve/adapter_folder.h"
#include "serve/generation.h"

namespace octavo::many {
namespace {

constexpr std::chrono::milliseconds kBusyTick{10}, kIdleTick{500};
constexpr std::int64_t kRefusedUs = 30'000'000;  // time for which requests get the error of a failed load
constexpr std::size_t kWaitingMax = 1024;        // requests that wait for the first load of a model
constexpr std::size_t kAdapterNameBytesMax = 1024;
constexpr std::size_t kMissingMax = 1024;  // number of missing adapters to remember
constexpr std::int64_t kMissingUs = 1'000'000;

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Error shutting_down() { return {ErrorCode::unavailable, "the server is shutting down", {}}; }

}  // namespace

Result<std::shared_ptr<ModelTable>> ModelTable::open(ArbiterRules rules, std::vector<ModelSource> sources,
                                                     std::int64_t waiting_bytes_max) {
  std::vector<ModelRules> models;
  // A response of one model may continue with another one, and paths with ids name no model.
  const auto responses = std::make_shared<openai::ResponseStore>(StoreOptions().bytes_max);
  for (ModelSource& source : sources) {
    models.push_back(source.rules);
    source.options.serve.responses.shared = responses;
  }
  TRY(Arbiter arbiter, Arbiter::make(rules, models));
  return std::shared_ptr<ModelTable>(
      new ModelTable(std::move(arbiter), std::move(sources), waiting_bytes_max));
}

ModelTable::ModelTable(Arbiter arbiter, std::vector<ModelSource> sources, std::int64_t waiting_bytes_max)
    : waiting_bytes_max_(waiting_bytes_max), arbiter_(std::move(arbiter)) {
  const std::int64_t now = now_us();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Entry& entry = entries_.emplace_back(Entry{.source = std::move(sources[i])});
    entry.source.options.events.requested = [this, i] { wanted(i); };
    entry.source.options.events.stop = first_loads_.get_token();
    if (entry.source.preload) arbiter_.requested(i, now);
  }
  thread_ = std::thread([this] { run(); });
}

ModelTable::~ModelTable() {
  stop();
  // Engines still call back while they end. A callback takes the lock, and must not see half an entry.
  std::vector<std::unique_ptr<Runtime>> runtimes;
  std::vector<std::shared_ptr<Service>> services;
  {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
      services.push_back(std::move(entry.service));
      runtimes.push_back(std::move(entry.runtime));
    }
  }
  services.clear();
  runtimes.clear();
}

void ModelTable::end_first_loads() {
  std::vector<Waiter> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].runtime) continue;
      std::ranges::move(std::exchange(entries_[i].waiting, {}), std::back_inserter(waiting));
      arbiter_.withdrawn(i);
    }
    first_loads_.request_stop();
  }
  for (const Waiter& waiter : waiting) waiter.done(std::unexpected(shutting_down()));
}

void ModelTable::stop() {
  end_first_loads();
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Entry& entry : entries_) {
      for (Waiter& waiter : std::exchange(entry.waiting, {})) waiting.push_back(std::move(waiter.done));
      std::ranges::move(std::exchange(entry.unload_waiting, {}), std::back_inserter(waiting));
    }
  }
  changed_.notify_all();
  for (const Done& done : waiting) done(std::unexpected(shutting_down()));
  if (thread_.joinable()) thread_.join();
  for (Entry& entry : entries_)
    if (entry.loader.joinable()) entry.loader.join();
}

std::optional<std::size_t> ModelTable::find_listed(std::string_view name) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (std::ranges::find(entries_[i].source.names, name) != entries_[i].source.names.end()) return i;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (const auto known = service(i); known && known->adapters->find(std::string(name))) return i;
  return std::nullopt;
}

std::optional<std::size_t> ModelTable::find_in_folders(std::string_view name) const {
  if (name.size() > kAdapterNameBytesMax) return std::nullopt;
  const std::int64_t now = now_us();
  {
    const std::lock_guard lock(mutex_);
    const auto missing = missing_until_us_.find(name);
    if (missing != missing_until_us_.end() && now < missing->second) return std::nullopt;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (const RuntimeOptions& options = entries_[i].source.options; !options.lora_folder.path.empty())
      if (find_in_adapter_folder(options.lora_folder.path, std::string(name), base_names(options))) return i;
  const std::lock_guard lock(mutex_);
  if (missing_until_us_.size() >= kMissingMax) missing_until_us_.clear();
  missing_until_us_.insert_or_assign(std::string(name), now + kMissingUs);
  return std::nullopt;
}

std::shared_ptr<Service> ModelTable::service(std::size_t model) const {
  const std::lock_guard lock(mutex_);
  return entries_[model].service;
}

// The caller must hold the lock, and must notify `changed_` afterwards. Returns an error if the call may not
// wait.
Result<> ModelTable::wait_for_load(std::size_t model, const Call& call, Done done) {
  Entry& entry = entries_[model];
  if (first_loads_.stop_requested() && !entry.runtime) return std::unexpected(shutting_down());
  if (entry.waiting.size() >= kWaitingMax)
    return failure(ErrorCode::resource_exhausted,
                   "{} requests wait for the load of the model, and the limit is {}: retry later",
                   entry.waiting.size(), kWaitingMax);
  const auto bytes_of = [](const Entry& each) {
    std::int64_t sum = 0;
    for (const Waiter& waiter : each.waiting) sum += waiter.call.bytes;
    return sum;
  };
  const std::int64_t of_model = call.bytes + bytes_of(entry), of_model_max = waiting_bytes_max_ / 2;
  if (of_model > of_model_max)
    return failure(ErrorCode::resource_exhausted,
                   "with this request, the requests that wait for the load of the model have {}, and the "
                   "limit is {}: retry later",
                   size_text(of_model), size_text(of_model_max));
  std::int64_t bytes = call.bytes;
  for (const Entry& each : entries_) bytes += bytes_of(each);
  if (bytes > waiting_bytes_max_)
    return failure(ErrorCode::resource_exhausted,
                   "with this request, the requests that wait for the loads of models have {}, and the limit "
                   "is {}: retry later",
                   size_text(bytes), size_text(waiting_bytes_max_));
  entry.waiting.push_back({.done = std::move(done), .call = call});
  arbiter_.requested(model, now_us(), call.deadline_us);
  return {};
}

// The caller must hold the lock. The load of a model that was loaded before continues: requests may wait in
// its engine.
void ModelTable::withdraw_first_load(std::size_t model) {
  const Entry& entry = entries_[model];
  if (!entry.runtime && entry.waiting.empty() && (!entry.source.preload || entry.broken))
    arbiter_.withdrawn(model);
}

void ModelTable::cancel(std::size_t model, const std::shared_ptr<std::atomic<bool>>& call) {
  std::vector<Waiter> ended;  // destroyed without the lock, because it may own the client's exchange
  {
    const std::lock_guard lock(mutex_);
    *call = true;
    std::vector<Waiter>& waiting = entries_[model].waiting;
    const auto found =
        std::ranges::find(waiting, call, [](const Waiter& waiter) { return waiter.call.cancelled; });
    if (found == waiting.end()) return;
    ended.push_back(std::move(*found));
    waiting.erase(found);
    withdraw_first_load(model);
  }
  changed_.notify_all();
}

void ModelTable::keep(std::size_t model, std::int64_t keep_us) {
  {
    const std::lock_guard lock(mutex_);
    arbiter_.keep(model, keep_us);
  }
  changed_.notify_all();
}

void ModelTable::service_of(std::size_t model, const Call& call, Ready ready) {
  const auto answer = [&]() -> std::optional<Result<std::shared_ptr<Service>>> {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[model];
    if (stopping_) return std::unexpected(shutting_down());
    if (call.cancelled && *call.cancelled) return std::nullopt;
    if (auto fits = arbiter_.fits(model); !fits) return std::unexpected(fits.error());
    const std::int64_t now = now_us();
    observe_requests();
    if (entry.service && !entry.broken) {
      if (arbiter_.models()[model].presence == Presence::loaded)
        arbiter_.requested(model, now);
      else if (call.deadline_us != 0 && (entry.deadline_us < now || call.deadline_us < entry.deadline_us))
        entry.deadline_us = call.deadline_us;
      return entry.service;
    }
    if (now < entry.refused_until_us) return failure(ErrorCode::unavailable, "{}", entry.error);
    auto done = [this, model, ready](const Result<>& result) {
      if (!result) return ready(std::unexpected(result.error()));
      ready(service(model));
    };
    if (auto waits = wait_for_load(model, call, std::move(done)); !waits)
      return std::unexpected(waits.error());
    return std::nullopt;
  }();
  if (answer) return ready(*answer);
  changed_.notify_all();
}

void ModelTable::load(std::size_t model, const Call& call, Done done) {
  const auto is_loaded = [&]() -> Result<bool> {
    const std::lock_guard lock(mutex_);
    if (stopping_) return std::unexpected(shutting_down());
    if (call.cancelled && *call.cancelled) return false;
    TRY_VOID(arbiter_.fits(model));
    observe_requests();
    if (arbiter_.models()[model].presence == Presence::loaded) return true;
    TRY_VOID(wait_for_load(model, call, done));
    return false;
  }();
  if (!is_loaded) return done(std::unexpected(is_loaded.error()));
  if (*is_loaded) return done({});
  changed_.notify_all();
}

void ModelTable::unload(std::size_t model, Done done) {
  const auto action = [&]() -> Result<Action> {
    const std::lock_guard lock(mutex_);
    observe_requests();
    TRY(const Action unloading, arbiter_.unload(model));
    entries_[model].unload_waiting.push_back(done);
    return unloading;
  }();
  if (!action) return done(std::unexpected(action.error()));
  perform(*action);
}

// Called when a request or a command waits in the engine.
void ModelTable::wanted(std::size_t model) {
  {
    const std::lock_guard lock(mutex_);
    arbiter_.requested(model, now_us(), entries_[model].deadline_us);
  }
  changed_.notify_all();
}

// Reports to the arbiter which models have requests, and which engines have failed.
void ModelTable::observe_requests() {
  const std::int64_t now = now_us();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (!entry.runtime) continue;
    const EngineStats stats = engine(i).stats().front();
    arbiter_.set_busy(i, stats.requests.unfinished > 0, now);
    if (stats.condition.healthy || arbiter_.models()[i].presence != Presence::loaded) continue;
    arbiter_.load_failed(i);
    entry.broken = true;
    entry.error = fmt::format("the engine of model {} has failed: the log of the server has the reason",
                              entry.source.names.front());
    entry.refused_until_us = now + kRefusedUs;
  }
}

// Removes and returns the calls that can wait no longer: their time is over, or their model does not fit.
std::vector<std::pair<ModelTable::Done, Error>> ModelTable::take_ended() {
  const Error late{ErrorCode::unavailable, "the time limit was over before the model was loaded", "timeout"};
  const std::int64_t now = now_us();
  std::vector<std::pair<Done, Error>> ended;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].waiting.empty()) continue;
    const Result<> fits = arbiter_.fits(i);
    std::erase_if(entries_[i].waiting, [&](Waiter& waiter) {
      const bool is_late = waiter.call.deadline_us != 0 && waiter.call.deadline_us <= now;
      if (fits && !is_late) return false;
      ended.emplace_back(std::move(waiter.done), fits ? late : fits.error());
      return true;
    });
    withdraw_first_load(i);
  }
  return ended;
}

// Returns the services of models that cannot be loaded again, but whose engines have requests that wait.
std::vector<std::shared_ptr<Service>> ModelTable::stranded() const {
  std::vector<std::shared_ptr<Service>> found;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Arbiter::Model& model = arbiter_.models()[i];
    if (entries_[i].service && model.busy && model.presence == Presence::unloaded && !arbiter_.fits(i))
      found.push_back(entries_[i].service);
  }
  return found;
}

void ModelTable::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    observe_requests();
    auto ended = take_ended();
    const auto cannot_load = stranded();
    const std::vector<Action> actions = arbiter_.decide(now_us());
    if (!actions.empty() || !ended.empty() || !cannot_load.empty()) {
      lock.unlock();
      for (const auto& [done, error] : ended) done(std::unexpected(error));
      ended.clear();  // without the lock: the end of a client's exchange may call keep()
      for (const auto& service : cannot_load)
        for (const auto& generation : service->generations.all()) generation->shut_down();
      for (const Action& action : actions) perform(action);
      lock.lock();
      if (cannot_load.empty()) continue;  // otherwise waits until the engines have ended the requests
    }
    changed_.wait_for(lock, arbiter_.waiting() ? kBusyTick : kIdleTick);
  }
}

// The caller must not hold the lock, because engines may call back at once.
void ModelTable::perform(const Action& action) {
  const std::size_t model = action.model;
  const std::string& name = entries_[model].source.names.front();
  switch (action.kind) {
    case Action::Kind::load:
      log_info("model {}: loading", name);
      if (entries_[model].runtime)
        return engine(model).load([this, model](const Result<>& result) { loaded(model, result); });
      return first_load(model);
    case Action::Kind::unload:
      log_info("model {}: unloading", name);
      return engine(model).unload([this, model](const Result<>& result) { unloaded(model, result); });
    case Action::Kind::drop_cache:
      log_info("model {}: its KV cache is dropped", name);
      return engine(model).drop_kept_cache();
  }
}

void ModelTable::first_load(std::size_t model) {
  Entry& entry = entries_[model];
  if (entry.loader.joinable()) entry.loader.join();  // thread of a load that failed
  entry.loader = std::thread([this, model, &entry] {
    auto runtime = start_runtime(entry.source.options);
    if (!runtime) return loaded(model, std::unexpected(runtime.error()));
    {
      const std::lock_guard lock(mutex_);
      entry.runtime = *std::move(runtime);
      entry.service = entry.runtime->service;
    }
    loaded(model, {});
  });
}

void ModelTable::loaded(std::size_t model, const Result<>& result) {
  std::vector<Waiter> waiting;
  Result<> outcome;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;  // stop() has answered the calls
    Entry& entry = entries_[model];
    const std::string& name = entry.source.names.front();
    const std::int64_t now = now_us();
    entry.deadline_us = 0;
    waiting = std::exchange(entry.waiting, {});
    if (result) {
      const EngineInfo info = engine(model).info();
      arbiter_.loaded(model, now, info.weight_bytes, info.cache.bytes, info.cache.outlives_engine);
      const double seconds = static_cast<double>(arbiter_.models()[model].load_us()) * 1e-6;
      entry.broken = false;
      outcome = arbiter_.fits(model);
      entry.error = outcome ? "" : outcome.error().message;
      if (!outcome) log_error("model {}: {}", name, entry.error);
      ++entry.loads;
      entry.load_seconds += seconds;
      log_info("model {}: loaded after {:.2f} s ({} of weights, {} of KV cache)", name, seconds,
               size_text(info.weight_bytes), size_text(info.cache.bytes));
    } else {
      arbiter_.load_failed(model);
      entry.broken = true;
      entry.error = fmt::format("model {} cannot be loaded: {}{}{}", name, result.error().field,
                                result.error().field.empty() ? "" : ": ", result.error().message);
      entry.refused_until_us = now + kRefusedUs;
      outcome = failure(ErrorCode::unavailable, "{}", entry.error);
      if (!first_loads_.stop_requested()) log_error("{}", entry.error);
    }
  }
  changed_.notify_all();
  for (const Waiter& waiter : waiting) waiter.done(outcome);
}

void ModelTable::unloaded(std::size_t model, const Result<>& result) {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (result) {
      arbiter_.unloaded(model, now_us());
      ++entries_[model].unloads;
    } else {
      arbiter_.unload_failed(model, now_us());
      log_warning("model {} cannot be unloaded: {}", entries_[model].source.names.front(),
                  result.error().message);
    }
    observe_requests();  // a request may have arrived just before the unload
    waiting = std::exchange(entries_[model].unload_waiting, {});
  }
  changed_.notify_all();
  for (const Done& done : waiting) done(result);
}

std::vector<ModelStatus> ModelTable::status() const {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = now_us(), today = seconds_since_1970();
  std::vector<ModelStatus> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    ModelStatus& status = all.emplace_back(ModelStatus{.error = entry.error,
                                                       .model = arbiter_.models()[i],
                                                       .loads = entry.loads,
                                                       .unloads = entry.unloads,
                                                       .load_seconds = entry.load_seconds});
    constexpr std::string_view kStates[] = {"unloaded", "loading", "loaded", "unloading"};
    status.state = kStates[static_cast<std::size_t>(status.model.presence)];
    if (status.model.presence == Presence::unloaded && !entry.error.empty()) status.state = "failed";
    if (status.model.used_us != 0) status.last_use = today - (now - status.model.used_us) / 1'000'000;
    if (!entry.runtime) continue;
    const EngineStats stats = entry.runtime->engine->stats().front();
    status.unfinished = stats.requests.unfinished;
    if (!stats.condition.healthy) status.state = "failed";
  }
  return all;
}

std::int64_t ModelTable::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return arbiter_.used_bytes();
}

std::int64_t ModelTable::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return arbiter_.memory_bytes();
}

}  // namespace octavo::many
