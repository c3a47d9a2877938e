// The engine, which implements EngineClient in the process that computes. One thread plans, runs and
// commits steps. Other threads communicate with it through an inbox.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "engine/cache/kept_cache.h"
#include "engine/cache/kv_residency.h"
#include "engine/cache/kv_transfers.h"
#include "engine/cache/session_table.h"
#include "engine/execute/executor.h"
#include "engine/loop/adapter_table.h"
#include "engine/loop/answer_table.h"
#include "engine/loop/grammar_compiler.h"
#include "engine/loop/inbox.h"
#include "engine/loop/mask_worker.h"
#include "engine/loop/step.h"
#include "engine/loop/step_watch.h"
#include "engine/media/media_table.h"
#include "events/kv_event_options.h"
#include "request/engine_client.h"
#include "schedule/scheduler.h"

namespace octavo {

class KvEventPublisher;

struct EngineParts {
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Proposer> proposer{};
  DraftPolicy draft_policy{};
  // Creates the vocabulary of grammars. If it is empty, requests with a grammar are rejected.
  MakeVocabulary vocabulary{};
  std::uint64_t seed = 0;
  std::function<void()> after_step{};  // called on the engine thread after the outputs of a step are sent
  StepWatchRule watch{};
  KvEventOptions kv_events{};
  // fraction of the blocks that KvResidencyStats measures; 0: no measurement
  double kv_residency_sample = 0;
  WorkFigures work_figures{};  // work of the model; 0: unknown, so the time of a step is divided in
                               // proportion to tokens
  bool report_work = false;
  KvTransferOptions kv_transfer{};
  SessionLimits sessions{};
  std::unique_ptr<KeptCache> kept{};  // blocks that outlive the process; the executor owns the memory
  int threads = 1;
};

class Engine final : public EngineClient {
 public:
  // Starts the thread, and sets the limits in `info` that follow from the options. Returns an error if the
  // scheduler's options are invalid, or if the executor does not support an option.
  static Result<std::unique_ptr<Engine>> start(SchedulerOptions options, EngineInfo info, EngineParts parts);
  ~Engine() override;

  EngineInfo info() const override { return info_; }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override { inbox_.abort(id); }
  void reset_prefix_cache() override { inbox_.request_reset(); }
  void look_at_prefixes() override { inbox_.look_at_prefixes(); }
  void command_sessions(SessionCommand command, SessionsDone done) override {
    inbox_.command({std::move(command), std::move(done)});
  }
  void log_state() override { inbox_.log_state(); }
  void load_adapter(AdapterSource source, AdapterDone done) override {
    inbox_.command({.source = std::move(source), .done = std::move(done)});
  }
  void unload_adapter(std::string name, AdapterDone done) override {
    inbox_.command(
        {.source = {.name = std::move(name), .path = {}}, .unload = true, .done = std::move(done)});
  }
  // Supports only level 1, at which the engine keeps its weights.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override { inbox_.wake_up(std::move(done)); }
  void pause(PauseMode mode, Done done) override { inbox_.pause({mode, std::move(done)}); }
  void resume() override { inbox_.resume(); }
  std::vector<EngineStats> stats() const override { return {own_stats()}; }
  EngineStats own_stats() const;
  void drain() override;

 private:
  Engine(std::unique_ptr<Scheduler> scheduler, std::unique_ptr<KvEventPublisher> events, EngineInfo info,
         EngineParts parts);

  int max_total_tokens(const Request& request) const;
  void thread_main();
  void admit(Submission& submission);
  void start(AnswerIndex index);
  void schedule(AnswerIndex index);
  void end_turn(const Answer& answer);
  void take(AdapterCommand& command);
  void advance_adapters();
  Result<> start_transfers(const KvTransferOptions& options);
  void advance_transfers();
  bool must_give_way() const;
  bool assist_engines(Result<bool>& ran);
  void run_session_commands();
  void fall_asleep();
  Result<> wake(std::span<const Done> wakes);
  void empty_cache();
  void begin_pause(Pause&& wanted);
  void end_pauses_once_still(bool frozen);
  void end_pauses(const Result<>& result);
  void end_sleeps(const Result<>& result);
  void advance_media();
  void start_guided(const GrammarReady& ready);
  void abort_request(RequestId id);
  void write_state(LogLevel level);
  void fail_everything(const Error& error);
  void publish_stats(bool healthy);
  void publish_prefixes();
  void publish_adapters();
  void publish_events();
  void restore_kept(int threads);

  const EngineInfo info_;
  const std::uint64_t seed_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Proposer> proposer_;
  struct {
    std::unique_ptr<KvEventPublisher> events;  // null: events are disabled
    std::optional<KvResidency> residency;      // nullopt: not measured
    std::unique_ptr<KeptCache> kept;           // null: blocks do not outlive the process
    std::function<void()> after_step;          // see EngineParts
  } observers_;
  std::unique_ptr<Scheduler> scheduler_;
  SessionTable sessions_;
  Inbox inbox_;
  GrammarCompiler grammars_;
  AnswerTable answers_;
  AdapterTable adapters_;
  MediaTable media_;
  MaskWorker masks_;
  StepLoop steps_;
  StepWatch watch_;
  std::unique_ptr<KvTransfers> transfers_;  // null: no connectors
  // Duration of the last step in microseconds; 0 if no step ran since media_ advanced.
  std::int64_t step_us_ = 0;
  struct {
    std::vector<Done> sleeps;
    std::vector<Pause> pauses;
    std::deque<SessionRequest> sessions;
    bool cache = false;  // the cache needs memory again after sleep()
  } waiting_;  // pending calls

  mutable std::mutex stats_mutex_;
  EngineStats stats_;

  std::unique_ptr<ArrivalWatch> engines_watch_;  // null: no other engine shares experts with this one
  std::thread thread_;
};

}  // namespace octavo
