// An engine in this process: one thread that plans, runs and commits steps, and an inbox for everybody else.
#pragma once

#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "engine/answer_table.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/step.h"
#include "request/engine_client.h"
#include "schedule/scheduler.h"

namespace octavo {

struct EngineLimits {
  int max_unfinished = 4096;  // answers
  int vocab_size = 0;
  std::uint64_t seed = 0;  // for requests that bring none
};

class Engine final : public EngineClient {
 public:
  // Starts the thread. proposer: may be null. Errors: the scheduler's options are invalid.
  static Result<std::unique_ptr<Engine>> start(SchedulerOptions options, EngineLimits limits,
                                               std::unique_ptr<Executor> executor,
                                               std::unique_ptr<Proposer> proposer = nullptr);
  // Aborts what is unfinished, then stops the thread.
  ~Engine() override;

  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override { inbox_.abort(id); }
  void reset_prefix_cache() override { inbox_.request_reset(); }
  EngineStats stats() const override;
  void drain() override;

 private:
  Engine(std::unique_ptr<Scheduler> scheduler, EngineLimits limits, std::unique_ptr<Executor> executor,
         std::unique_ptr<Proposer> proposer);

  int max_total_tokens(const Request& request) const;
  void thread_main();
  void admit(Submission& submission);
  void abort_request(RequestId id);
  void fail_everything(const Error& error);
  void publish_stats(bool healthy);

  EngineLimits limits_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Proposer> proposer_;
  std::unique_ptr<Scheduler> scheduler_;
  Inbox inbox_;
  AnswerTable answers_;
  StepLoop steps_;

  mutable std::mutex stats_mutex_;
  EngineStats stats_;

  std::thread thread_;
};

}  // namespace octavo
