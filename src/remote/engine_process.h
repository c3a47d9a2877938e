// Client of an engine in a separate process. If the process dies, it is restarted, and each unfinished
// request continues with its next token. No token is lost or repeated.
//
// One thread does all communication. It owns the state of the process (engine_state.h), the unfinished
// requests (unfinished_requests.h), the adapters and the pauses. The struct Shared contains the data that
// both the callers and this thread use.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/error.h"
#include "dist/shared_memory.h"
#include "remote/adapter_ledger.h"
#include "remote/child_process.h"
#include "remote/engine_meeting.h"
#include "remote/engine_state.h"
#include "remote/pause_ledger.h"
#include "remote/restart_policy.h"
#include "remote/sleep_cycle.h"
#include "remote/unfinished_requests.h"
#include "remote/wakeup.h"
#include "remote/weights_change.h"
#include "remote/wire.h"
#include "request/engine_client.h"

namespace octavo::remote {

struct EngineProcessOptions {
  std::vector<std::string> command;  // arguments of the program, which communicates over kChildSocket
  std::string program = "/proc/self/exe";
  std::shared_ptr<EngineMeeting> meeting{};  // connections of engines on other hosts; null: the engine runs
                                             // on this host
  int number = 0;                               // index of the engine at the meeting
  bool shares_experts = false;                  // whether other engines need this engine's experts
  std::shared_ptr<const Socket> expert_port{};  // reserves the port of shared experts; null: a flag sets it
  std::uint64_t seed = 0;                       // seed for requests without a seed
  int hung_after_ms = 10'000;  // time in ms without a message after which an engine counts as hung
  // Age in ms, or the first output token, after which a death was not caused by the engine's start. After
  // this age, a death is also less likely to be caused by a request that the engine got at its start.
  int young_ms = 10'000;
  bool keeps_cache = false;       // whether the KV blocks of a killed engine are kept for the next one
  std::string kept_file{};        // file in memory for these blocks; "": anonymous memory
  bool on_several_hosts = false;  // whether ranks run on several hosts, so that requests are rejected during
                                  // a restart
  // called with (bytes read, total bytes) during the first load
  std::function<void(std::size_t, std::size_t)> progress{};
  // Flag of the command that sets another folder of weights; "": reload_weights() is rejected.
  std::string weights_flag{};
  // Checks a folder without reading its weights; empty: no check.
  std::function<Result<>(const std::string&)> check_weights{};
};

// Returns the error of calls that need an engine that is awake.
Error asleep();

class EngineProcess final : public EngineClient {
 public:
  // Returns when the engine is ready. Returns the engine's own error if it cannot load, or an error if it
  // died.
  static Result<std::unique_ptr<EngineProcess>> start(EngineProcessOptions options);
  // Ends all unfinished requests and the process.
  ~EngineProcess() override;

  EngineInfo info() const override { return info_; }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  void log_state() override;
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // Sleeps. Level 2 ends the process, and wake_up() starts a new one.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  // Ends the process and starts another one with these weights. If this fails, starts one with the previous
  // weights.
  void reload_weights(std::string path, Done done) override;
  std::vector<EngineStats> stats() const override;
  void drain() override;

  // Process id of the current process; -1: no process.
  pid_t pid() const;

 private:
  struct Accepted {
    RequestId id;
    Request request;
    std::shared_ptr<OutputSink> sink;
    std::int64_t arrived_us;
  };
  struct AdapterCommand {
    ChangeAdapter change;
    AdapterDone done;
  };
  struct PauseCommand {
    PauseMode mode;
    Done done;
  };
  using Command = std::variant<Accepted, Abort, ResetPrefixCache, LookAtPrefixes, LogState, AdapterCommand,
                               WakeUp, PauseCommand, Resume>;

  // Members that both callers and the thread use, guarded by mutex_.
  struct Shared {
    std::vector<Command> commands{};
    EngineStats stats{};
    RequestId last_id = 0;
    int answers = 0;      // number of unfinished answers
    bool closed = false;  // true: no more requests are accepted
    bool broken = false;  // true: the engine died too often
    bool stopping = false;
    bool paused = false;  // true after pause(), even if the engine has not received it yet
    SleepCycle sleep{};
    WeightsChange weights{};
    EnginePresence presence = EnginePresence::starting;
    pid_t pid = -1;

    // Errors: the engine has failed or is shutting down.
    Result<> usable() const;
  };

  explicit EngineProcess(EngineProcessOptions options);

  void post(Command command);
  void change_adapter(ChangeAdapter change, AdapterDone done);

  // Functions of the thread. Those that return an event wait until it happens.
  void run();
  EngineEvent next_event();
  EngineEvent run_process();
  Result<EngineEvent> serve_process();
  EngineEvent after_death(const Error& death);
  EngineEvent wait_asleep();
  EngineEvent refuse_requests();

  Result<ChildProcess> begin_process();
  Result<> open_kept();
  void clear_kept();
  Result<ChildProcess> meet_process();
  Result<> receive();
  std::optional<EngineEvent> end_due();
  bool hangs() const;
  void wait_for_command();
  void take_commands();
  void take(Accepted&& accepted);
  void take(const Abort& abort);
  void take(AdapterCommand&& command);
  void take(PauseCommand&& command);
  void take(const Resume& resume);
  void take(const auto& message) { send(message); }
  template <class Message>
  void send(const Message& message);  // does nothing if no process is up
  Result<> take(FromEngine&& message);
  Result<> greet(const Ready& ready);
  void end_change_of_weights();
  void end_commands_of_callers(const Error& error);
  void end_all(const Error& error);
  bool stopping() const;
  state::Up* up() { return std::get_if<state::Up>(&state_); }

  const EngineProcessOptions options_;
  std::promise<Result<>> started_;
  EngineInfo info_;  // info of the first process; the thread sets it before started_
  Wakeup wakeup_;

  mutable std::mutex mutex_;
  std::condition_variable emptied_;  // notified when Shared::answers is 0
  Shared shared_;

  // Used only by the thread.
  EngineState state_;
  ChildProcess child_;
  SharedMemory kept_;            // KV blocks that outlive the process; without descriptor: none
  bool start_reported_ = false;  // true: started_ has its value
  RestartPolicy restarts_;
  UnfinishedRequests requests_;
  AdapterLedger adapters_;
  PauseLedger pauses_;

  std::thread thread_;
};

}  // namespace octavo::remote
