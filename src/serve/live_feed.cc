#include "serve/live_feed.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

#include "base/clock.h"
#include "http/sse.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kWatchersMax = 64;
constexpr std::chrono::milliseconds kFeedInterval{250};
constexpr std::int64_t kLookUs = 2'000'000;

json::object histogram_json(const Histogram& histogram) {
  return {{"bounds", json::array(histogram.bounds().begin(), histogram.bounds().end())},
          {"counts", json::array(histogram.counts().begin(), histogram.counts().end())}};
}

json::array steps_json(const RecentSteps& recent, std::int64_t after) {
  std::vector<StepRecord> steps;
  for (const StepRecord& step : recent)
    if (step.number > after) steps.push_back(step);
  std::ranges::sort(steps, {}, &StepRecord::number);
  json::array out;
  for (const StepRecord& step : steps)
    out.push_back({{"number", step.number},
                   {"prompt_tokens", step.prompt_tokens},
                   {"answer_tokens", step.answer_tokens},
                   {"microseconds", step.microseconds}});
  return out;
}

json::object prefixes_json(const PrefixTree& tree) {
  json::array nodes;
  for (const PrefixNode& node : tree.nodes)
    nodes.push_back(
        {{"parent", node.parent}, {"blocks", node.blocks}, {"used", node.used}, {"shared", node.shared}});
  return {{"nodes", std::move(nodes)}, {"left_out", tree.left_out}};
}

double feed_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

LiveFeed::LiveFeed(EngineClient& engine, const Metrics& metrics)
    : engine_(engine), metrics_(metrics), thread_([this] { run(); }) {}

bool LiveFeed::add(std::shared_ptr<http::Exchange> exchange) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || watchers_.size() >= kWatchersMax) return false;
    exchange->start_stream({.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}}});
    watchers_.push_back(std::move(exchange));
  }
  changed_.notify_one();
  return true;
}

void LiveFeed::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LiveFeed::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !watchers_.empty(); });
    if (stopping_) break;
    if (now_us() - looked_us_ >= kLookUs) {
      engine_.look_at_prefixes();
      looked_us_ = now_us();
    }
    const std::string event = http::sse_event(snapshot());
    std::erase_if(watchers_, [&](const auto& watcher) { return !watcher->write(event); });
    changed_.wait_for(lock, kFeedInterval, [&] { return stopping_; });
  }
  for (const auto& watcher : watchers_) watcher->finish();
  watchers_.clear();
}

std::string LiveFeed::snapshot() {
  const EngineStats s = engine_.stats().front();
  const Metrics::Latencies latencies = metrics_.latencies(s.engine);
  const json::array steps = steps_json(s.recent_steps, last_step_);
  if (!steps.empty()) last_step_ = steps.back().at("number").as_int64();
  return json::serialize(json::object{
      {"time", feed_time()},
      {"healthy", s.condition.healthy},
      {"running", s.requests.running},
      {"waiting", s.requests.waiting},
      {"blocks", {{"total", s.blocks.total}, {"used", s.blocks.used}, {"cached", s.blocks.cached}}},
      {"prompt_tokens", s.tokens.prompt},
      {"cached_tokens", s.tokens.prompt_cached},
      {"generation_tokens", s.tokens.generation},
      {"preemptions", s.preemptions},
      {"prefix", {{"queries", s.prefix_cache.queries}, {"hits", s.prefix_cache.hits}}},
      {"sessions",
       {{"count", s.prefix_cache.sessions.sessions},
        {"pinned", s.prefix_cache.sessions.pinned},
        {"held_blocks", s.prefix_cache.sessions.held_blocks},
        {"idle_blocks", s.prefix_cache.sessions.idle_blocks}}},
      {"prefixes", prefixes_json(s.prefix_cache.tree)},
      {"ttft", histogram_json(latencies.first_token)},
      {"itl", histogram_json(latencies.token_gap)},
      {"steps", steps}});
}

}  // namespace octavo
