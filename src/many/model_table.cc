#include "many/model_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/size_text.h"

namespace octavo::many {
namespace {

constexpr std::chrono::milliseconds kBusyTick{10}, kIdleTick{500};
constexpr std::int64_t kRefusedUs = 30'000'000;  // after a failed load, so that clients do not repeat it
constexpr std::size_t kWaitingMax = 1024;        // requests that wait for the first load of a model

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int unfinished_of(const EngineClient& engine) { return engine.stats().front().requests.unfinished; }

}  // namespace

Result<std::shared_ptr<ModelTable>> ModelTable::open(ArbiterRules rules, std::vector<ModelSource> sources) {
  std::vector<ModelRules> models;
  for (const ModelSource& source : sources) models.push_back(source.rules);
  TRY(Arbiter arbiter, Arbiter::make(rules, models));
  return std::shared_ptr<ModelTable>(new ModelTable(std::move(arbiter), std::move(sources)));
}

ModelTable::ModelTable(Arbiter arbiter, std::vector<ModelSource> sources) : arbiter_(std::move(arbiter)) {
  const std::int64_t now = now_us();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Entry& entry = entries_.emplace_back(Entry{.source = std::move(sources[i])});
    entry.source.options.events.requested = [this, i] { wanted(i); };
    if (entry.source.preload) arbiter_.requested(i, now);
  }
  thread_ = std::thread([this] { run(); });
}

ModelTable::~ModelTable() {
  stop();
  // Engines still call back while they end, so their entries must exist.
  for (Entry& entry : entries_) {
    entry.service.reset();
    entry.runtime.reset();
  }
}

void ModelTable::stop() {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Entry& entry : entries_) {
      std::ranges::move(std::exchange(entry.waiting, {}), std::back_inserter(waiting));
      std::ranges::move(std::exchange(entry.unload_waiting, {}), std::back_inserter(waiting));
    }
  }
  changed_.notify_all();
  for (const Done& done : waiting) done(failure(ErrorCode::unavailable, "the server is shutting down"));
  if (thread_.joinable()) thread_.join();
  for (Entry& entry : entries_)
    if (entry.loader.joinable()) entry.loader.join();
}

std::optional<std::size_t> ModelTable::find(std::string_view name) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (std::ranges::find(entries_[i].source.names, name) != entries_[i].source.names.end()) return i;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (const auto known = service(i); known && known->adapters->find(std::string(name))) return i;
  return std::nullopt;
}

std::shared_ptr<Service> ModelTable::service(std::size_t model) const {
  const std::lock_guard lock(mutex_);
  return entries_[model].service;
}

void ModelTable::service_of(std::size_t model, std::int64_t deadline_us, Ready ready) {
  const auto answer = [&]() -> std::optional<Result<std::shared_ptr<Service>>> {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[model];
    if (stopping_) return failure(ErrorCode::unavailable, "the server is shutting down");
    const std::int64_t now = now_us();
    if (entry.service) {
      if (arbiter_.models()[model].presence == Presence::loaded)
        arbiter_.requested(model, now);
      else if (deadline_us != 0 && (entry.deadline_us == 0 || deadline_us < entry.deadline_us))
        entry.deadline_us = deadline_us;
      return entry.service;
    }
    if (now < entry.refused_until_us) return failure(ErrorCode::unavailable, "{}", entry.error);
    if (entry.waiting.size() >= kWaitingMax)
      return failure(ErrorCode::resource_exhausted,
                     "{} requests wait for the first load of the model, and the limit is {}: retry later",
                     entry.waiting.size(), kWaitingMax);
    entry.waiting.push_back([this, model, ready](const Result<>& result) {
      if (!result) return ready(std::unexpected(result.error()));
      ready(service(model));
    });
    arbiter_.requested(model, now, deadline_us);
    return std::nullopt;
  }();
  if (answer) return ready(*answer);
  changed_.notify_all();
}

void ModelTable::load(std::size_t model, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && arbiter_.models()[model].presence != Presence::loaded) {
      entries_[model].waiting.push_back(std::exchange(done, {}));
      arbiter_.requested(model, now_us());
    }
  }
  changed_.notify_all();
  if (done) done({});
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

// A request or a command waits in the engine.
void ModelTable::wanted(std::size_t model) {
  {
    const std::lock_guard lock(mutex_);
    arbiter_.requested(model, now_us(), entries_[model].deadline_us);
  }
  changed_.notify_all();
}

void ModelTable::observe_requests() {
  const std::int64_t now = now_us();
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].runtime) arbiter_.set_busy(i, unfinished_of(engine(i)) > 0, now);
}

void ModelTable::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    observe_requests();
    const std::vector<Action> actions = arbiter_.decide(now_us());
    if (!actions.empty()) {
      lock.unlock();
      for (const Action& action : actions) perform(action);
      lock.lock();
      continue;
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
      return engine(model).unload([this, model](const Result<>&) { unloaded(model); });
    case Action::Kind::drop_cache:
      log_info("model {}: its KV cache is dropped", name);
      return engine(model).drop_kept_cache();
  }
}

void ModelTable::first_load(std::size_t model) {
  Entry& entry = entries_[model];
  if (entry.loader.joinable()) entry.loader.join();  // of a load that failed
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
  std::vector<Done> waiting;
  Result<> outcome;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[model];
    const std::string& name = entry.source.names.front();
    const std::int64_t now = now_us();
    entry.deadline_us = 0;
    waiting = std::exchange(entry.waiting, {});
    if (result) {
      const EngineInfo info = engine(model).info();
      arbiter_.loaded(model, now, info.weight_bytes, info.cache_bytes);
      const double seconds = static_cast<double>(arbiter_.models()[model].load_us()) * 1e-6;
      entry.error.clear();
      ++entry.loads;
      entry.load_seconds += seconds;
      log_info("model {}: loaded after {:.2f} s ({} of weights, {} of KV cache)", name, seconds,
               size_text(info.weight_bytes), size_text(info.cache_bytes));
    } else {
      arbiter_.load_failed(model);
      entry.error = fmt::format("model {} cannot be loaded: {}{}{}", name, result.error().field,
                                result.error().field.empty() ? "" : ": ", result.error().message);
      entry.refused_until_us = now + kRefusedUs;
      outcome = failure(ErrorCode::unavailable, "{}", entry.error);
      if (!stopping_) log_error("{}", entry.error);
    }
  }
  changed_.notify_all();
  for (const Done& done : waiting) done(outcome);
}

void ModelTable::unloaded(std::size_t model) {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    arbiter_.unloaded(model, now_us());
    observe_requests();  // a request may have arrived just before the unload
    ++entries_[model].unloads;
    waiting = std::exchange(entries_[model].unload_waiting, {});
  }
  changed_.notify_all();
  for (const Done& done : waiting) done({});
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
