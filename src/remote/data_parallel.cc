#include "remote/data_parallel.h"

#include <algorithm>
#include <future>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "request/check_request.h"

namespace octavo::remote {
namespace {

// Calls `done` with the first error, or none, when it has been called `count` times.
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

// Answers that wait weigh more than those that run (vLLM: DPLBAsyncMPClient).
std::int64_t load_of(const EngineStats& stats, const EngineInfo& info) {
  const int running = std::min(stats.unfinished, info.max_num_seqs);
  return std::int64_t{4} * (stats.unfinished - running) + running;
}

}  // namespace

DataParallelClient::DataParallelClient(std::vector<std::unique_ptr<EngineClient>> engines, std::uint64_t seed)
    : engines_(std::move(engines)), seed_(seed) {
  CHECK(!engines_.empty());
}

Result<std::unique_ptr<EngineClient>> DataParallelClient::start(
    int count, std::uint64_t seed, const std::function<Result<std::unique_ptr<EngineClient>>(int)>& start) {
  std::vector<std::future<Result<std::unique_ptr<EngineClient>>>> starting;
  for (int i = 0; i < count; ++i)
    starting.push_back(std::async(std::launch::async, [&start, i] { return start(i); }));
  for (const auto& one : starting) one.wait();
  std::vector<std::unique_ptr<EngineClient>> engines;
  for (auto& one : starting) {
    TRY(engines.emplace_back(), one.get());
  }
  return std::make_unique<DataParallelClient>(std::move(engines), seed);
}

EngineInfo DataParallelClient::info() const {
  EngineInfo info = engines_.front()->info();
  const int count = static_cast<int>(engines_.size());
  info.engines = count;
  info.max_num_seqs *= count;
  info.max_queued *= count;
  return info;
}

// Among equals the engines take turns.
std::size_t DataParallelClient::least_loaded() const {
  const std::size_t first = submitted_ % engines_.size();
  std::size_t best = first;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const std::size_t at = (first + i) % engines_.size();
    const EngineStats stats = engines_[at]->stats().front();
    if (!stats.healthy) continue;
    if (const std::int64_t load = load_of(stats, engines_[at]->info()); load < least) {
      best = at;
      least = load;
    }
  }
  return best;
}

// An engine's own ids become ids of all engines: the number of the engine is their last digit.
Result<RequestId> DataParallelClient::submit(Request request, std::shared_ptr<OutputSink> sink) {
  TRY_VOID(check_request(request, info()));
  if (draining_) return failure(ErrorCode::unavailable, "the engines are shutting down");
  const std::size_t at =
      request.engine ? static_cast<std::size_t>(*request.engine - engines_.front()->info().index) : least_loaded();
  const std::uint64_t number = ++submitted_;
  // Engines count their requests alike: what they would draw from a number of their own would be the same.
  if (!request.entropy) request.entropy = random_bits(seed_, number);
  request.engine.reset();
  TRY(const RequestId id, engines_[at]->submit(std::move(request), std::move(sink)));
  return id * engines_.size() + at;
}

void DataParallelClient::abort(RequestId id) { engines_[id % engines_.size()]->abort(id / engines_.size()); }

void DataParallelClient::reset_prefix_cache() {
  for (const auto& engine : engines_) engine->reset_prefix_cache();
}

void DataParallelClient::look_at_prefixes() {
  for (const auto& engine : engines_) engine->look_at_prefixes();
}

void DataParallelClient::load_adapter(AdapterSource source, AdapterDone done) {
  const AdapterDone one = after_all(engines_.size(), std::move(done));
  for (const auto& engine : engines_) engine->load_adapter(source, one);
}

void DataParallelClient::unload_adapter(std::string name, AdapterDone done) {
  const AdapterDone one = after_all(engines_.size(), std::move(done));
  for (const auto& engine : engines_) engine->unload_adapter(name, one);
}

void DataParallelClient::sleep(int level, Done done) {
  const Done one = after_all(engines_.size(), std::move(done));
  for (const auto& engine : engines_) engine->sleep(level, one);
}

void DataParallelClient::wake_up(Done done) {
  const Done one = after_all(engines_.size(), std::move(done));
  for (const auto& engine : engines_) engine->wake_up(one);
}

void DataParallelClient::pause(PauseMode mode, Done done) {
  const Done one = after_all(engines_.size(), std::move(done));
  for (const auto& engine : engines_) engine->pause(mode, one);
}

void DataParallelClient::resume() {
  for (const auto& engine : engines_) engine->resume();
}

std::vector<EngineStats> DataParallelClient::stats() const {
  std::vector<EngineStats> all;
  for (const auto& engine : engines_) all.push_back(std::move(engine->stats().front()));
  return all;
}

void DataParallelClient::drain() {
  draining_ = true;
  for (const auto& engine : engines_) engine->drain();
}

}  // namespace octavo::remote
