// An engine for tests. It emits the tokens of a script, one per step, on a separate thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "request/engine_client.h"

namespace octavo {

struct Script {
  std::vector<TokenId> tokens{};  // output tokens; the request's max_tokens can end the output earlier
  // finish reason after the last token, unless max_tokens ends the output (`length`)
  FinishReason end = FinishReason::stop;
  std::optional<Error> error{};  // error of the last output, if `end` is FinishReason::error
  bool hang = false;             // true: after the last token, the engine waits for an abort
  int tokens_per_step = 1;
  std::vector<float> pooled{};
  std::vector<int> computed{};  // Output::computed_tokens of each output that only reports progress, before
                                // the first token
  int cached = 0;               // Output::cached_tokens of the first token
};

class FakeEngine final : public EngineClient {
 public:
  using ScriptOf = std::function<Script(const Request&, int index)>;

  explicit FakeEngine(ScriptOf script, int pause_us = 0)
      : step_us(pause_us), script_(std::move(script)), thread_([this] { loop(); }) {}
  ~FakeEngine() override {
    stopping_ = true;
    thread_.join();
  }

  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override {
    if (refusal_code) return failure(*refusal_code, "refused by the test");
    const std::lock_guard lock(mutex_);
    const RequestId id = ++last_id_;
    last_request = request;
    Active active{.sink = std::move(sink), .max_tokens = request.sampling.max_tokens.value_or(1 << 30)};
    active.prompt = request.prompt;
    active.logprobs = request.sampling.logprobs;
    active.reports = request.report_progress;
    active.times.arrived_us = now_us();
    for (int i = 0; i < request.sampling.n; ++i) active.answers.push_back({.script = script_(request, i)});
    ++submitted;
    active_.emplace(id, std::move(active));
    return id;
  }

  void abort(RequestId id) override {
    const std::lock_guard lock(mutex_);
    aborted_.insert(id);
    ++aborts;
  }

  void reset_prefix_cache() override {}

  void command_sessions(SessionCommand command, SessionsDone done) override {
    {
      const std::lock_guard lock(mutex_);
      sessions.commands.push_back(std::move(command));
      if (sessions.waits) return sessions.open.push_back(std::move(done));
    }
    done(sessions.result);
  }

  std::mutex& mutex_of_sessions() { return mutex_; }  // guards `sessions` while the server handles requests

  // Only stores `done` in `loads`; the test calls it.
  void load_adapter(AdapterSource source, AdapterDone done) override {
    const std::lock_guard lock(mutex_);
    loads.emplace_back(std::move(source), std::move(done));
  }

  void reload_weights(std::string path, Done done) override {
    reloads.folders.push_back(std::move(path));
    done(reloads.result);
  }

  EngineInfo info() const override { return described; }

  std::vector<EngineStats> stats() const override {
    if (out_of_memory) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    EngineStats stats;
    stats.requests.running = static_cast<int>(active_.size());
    stats.blocks.total = 100;
    stats.blocks.used = stats.requests.running;
    stats.condition.healthy = healthy;
    stats.condition.hangs = hangs;
    return {stats};
  }

  void drain() override {
    while (running() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  int running() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(active_.size());
  }

  EngineInfo described{};
  std::optional<ErrorCode> refusal_code{};
  std::atomic<bool> healthy = true;
  std::atomic<bool> hangs = false;
  std::atomic<bool> out_of_memory = false;
  std::atomic<int> submitted = 0;
  std::atomic<int> aborts = 0;
  std::vector<std::pair<AdapterSource, AdapterDone>> loads{};
  struct {
    std::vector<std::string> folders{};
    Result<> result{};
  } reloads;
  struct {
    std::vector<SessionCommand> commands{};
    Result<std::vector<SessionInfo>> result{};  // result that each command gets
    bool waits = false;                         // true: commands stay in `open`, and the test calls them
    std::vector<SessionsDone> open{};
  } sessions;
  std::atomic<int> step_us;        // pause between two steps
  std::atomic<int> delivered = 0;  // number of output tokens that sinks have received
  Request last_request{};          // not guarded by a mutex; read it only while no request is being submitted

 private:
  struct AnswerState {
    Script script;
    int produced = 0;
    std::size_t reported = 0;
    bool done = false;
  };
  struct Active {
    std::shared_ptr<OutputSink> sink;
    int max_tokens = 0;
    std::vector<TokenId> prompt{};
    LogprobRequest logprobs{};
    bool reports = false;
    std::vector<AnswerState> answers{};
    RequestTimes times{};
  };

  void loop() {
    while (!stopping_) {
      step();
      std::this_thread::sleep_for(std::chrono::microseconds(std::max(step_us.load(), 20)));
    }
  }

  void step() {
    std::vector<std::pair<std::shared_ptr<OutputSink>, Output>> outputs;
    {
      const std::lock_guard lock(mutex_);
      for (auto it = active_.begin(); it != active_.end();) {
        bool done = true;
        for (std::size_t i = 0; i < it->second.answers.size(); ++i) {
          if (auto output = advance(it->first, it->second, static_cast<int>(i)))
            outputs.emplace_back(it->second.sink, *std::move(output));
          done = done && it->second.answers[i].done;
        }
        it = done ? active_.erase(it) : std::next(it);
      }
    }
    for (auto& [sink, output] : outputs) {
      const int tokens = static_cast<int>(output.token_ids.size());
      sink->deliver(std::move(output));
      delivered += tokens;
    }
  }

  std::optional<Output> advance(RequestId id, Active& active, int index) {
    AnswerState& answer = active.answers[static_cast<std::size_t>(index)];
    if (answer.done) return std::nullopt;
    Output output;
    output.id = id;
    output.index = index;
    const Script& script = answer.script;
    if (aborted_.contains(id)) {
      output.finished = FinishReason::abort;
    } else if (active.reports && answer.reported < script.computed.size()) {
      output.computed_tokens = script.computed[answer.reported++];
      output.cached_tokens = script.computed.front();
      return output;
    } else {
      for (int i = 0; i < script.tokens_per_step && !output.finished; ++i)
        generate_one(active, answer, output);
      if (output.token_ids.empty() && !output.finished) return std::nullopt;
    }
    answer.done = output.finished.has_value();
    output.times = active.times;
    return output;
  }

  static void generate_one(Active& active, AnswerState& answer, Output& output) {
    const Script& script = answer.script;
    if (!script.pooled.empty()) {
      output.pooled = script.pooled;
      output.finished = FinishReason::stop;
      return;
    }
    const int total = static_cast<int>(script.tokens.size());
    if (answer.produced < total) {
      if (answer.produced == 0 && active.logprobs.of_prompt()) add_prompt_logprobs(active, output);
      const TokenId id = script.tokens[static_cast<std::size_t>(answer.produced++)];
      output.token_ids.push_back(id);
      if (active.logprobs.output)
        output.logprobs.push_back(logprobs_of(id, *active.logprobs.output, active.logprobs.token_ids));
      active.times.last_token_us = now_us();
      if (answer.produced == 1) {
        active.times.scheduled_us = active.times.first_token_us = now_us();
        output.cached_tokens = script.cached;
      }
    }
    if (answer.produced >= active.max_tokens) {
      output.finished = FinishReason::length;
    } else if (answer.produced == total && !script.hang) {
      output.finished = script.end;
      output.error = script.error;
    }
  }

  static void add_prompt_logprobs(const Active& active, Output& output) {
    const LogprobRequest& requested = active.logprobs;
    const auto start = static_cast<std::size_t>(requested.prompt_start);
    for (std::size_t i = requested.prompt ? 0 : start; i + 1 < active.prompt.size(); ++i) {
      const bool listed = !requested.prompt_token_ids.empty() && i >= start;
      output.prompt_logprobs.push_back(logprobs_of(
          active.prompt[i + 1], requested.prompt_token_ids.empty() ? requested.output.value_or(0) : 0,
          listed ? requested.prompt_token_ids[i - start] : std::vector<TokenId>()));
    }
  }

  // Each listed token gets the logprob -id / 64; padding (id < 0) gets -infinity.
  static TokenLogprobs logprobs_of(TokenId id, int count, const std::vector<TokenId>& listed) {
    TokenLogprobs entry;
    entry.id = id;
    entry.logprob = -0.5F;
    entry.rank = 1;
    for (const TokenId other : listed)
      entry.top.emplace_back(
          other, other < 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(-other) / 64);
    if (listed.empty())
      for (int i = 0; i < count; ++i) entry.top.emplace_back(id + i, -0.5F - static_cast<float>(i));
    return entry;
  }

  ScriptOf script_;
  mutable std::mutex mutex_;
  std::map<RequestId, Active> active_;
  std::set<RequestId> aborted_;
  RequestId last_id_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
