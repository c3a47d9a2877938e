// Client of an engine that runs in a separate process. If this process dies, it is restarted, and every
// unfinished request continues with its next token: no token is lost or repeated.
//
// One thread does all communication with the process. This thread owns the process state (engine_state.h),
// the unfinished requests (unfinished_requests.h), the adapters and the pauses. Data that callers also use is
// in the struct Shared.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
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
#include "remote/load_cycle.h"
#include "remote/pause_ledger.h"
#include "remote/restart_policy.h"
#include "remote/session_ledger.h"
#include "remote/sleep_cycle.h"
#include "remote/unfinished_requests.h"
#include "remote/wakeup.h"
#include "remote/weights_change.h"
#include "remote/wire.h"
#include "request/engine_client.h"

namespace octavo::remote {

struct EngineProcessOptions {
  std::vector<std::string> command;  // command line; the program communicates over kChildSocket
  std::string program = "/proc/self/exe";
  // source of the connection to an engine on another host; null: the engine is on this host
  std::shared_ptr<EngineMeeting> meeting{};
  int number = 0;  // index of the engine in `meeting`
  // whether other engines use experts in this process (expert parallelism)
  bool shares_experts = false;
  // keeps the port for shared experts reserved; null: a flag sets the port
  std::shared_ptr<const Socket> expert_port{};
  std::uint64_t seed = 0;      // used for requests without a seed
  int hung_after_ms = 10'000;  // time in ms without a message after which the process counts as hung
  // A process that has returned a token or is older than this (ms) did not die because of its start. A
  // death after this age is also less likely to be caused by a request that the process got when it
  // started.
  int young_ms = 10'000;
  bool keeps_cache = false;  // whether KV blocks survive the death of the process
  // memory file for these blocks; "": anonymous memory
  std::string kept_file{};
  // whether ranks run on several hosts; then requests are rejected during a restart
  bool on_several_hosts = false;
  // Called with (bytes read, total bytes) during the first load of the weights.
  std::function<void(std::size_t, std::size_t)> progress{};
  SessionLedgerLimits sessions{};
  // Ends start() with an error. Has no effect after start().
  std::stop_token stop{};
  // Called, on any thread, when a request or command arrives while the engine is unloaded or unloads.
  std::function<void()> wanted{};
  // Flag of the first process only: processes that start after an engine was ready do not get it.
  std::string first_flag{};
  // Flag in `command` that sets the folder of weights; "": reload_weights() returns an error.
  std::string weights_flag{};
  // Checks a folder before reload_weights() uses it; empty: no check.
  std::function<Result<>(const std::string&)> check_weights{};
};

// Returns the error for calls while the engine sleeps.
Error asleep();
// Returns the error for calls that end because the engine stops.
Error stopped();

class EngineProcess final : public EngineClient {
 public:
  // Returns when the engine is ready. Returns the engine's error if it cannot load, or an error if its
  // process died. Calls `meanwhile` while the engine loads. If `meanwhile` fails, start() ends the process
  // and returns the error.
  static Result<std::unique_ptr<EngineProcess>> start(EngineProcessOptions options,
                                                      const std::function<Result<>()>& meanwhile = {});
  // Ends all unfinished requests and the process.
  ~EngineProcess() override;

  EngineInfo info() const override { return info_; }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  void command_sessions(SessionCommand command, SessionsDone done) override;
  void log_state() override;
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // Level 2 ends the process, and wake_up() starts a new one.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void unload(Done done) override;
  void load(Done done) override;
  void drop_kept_cache() override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  // Restarts the process with these weights. If this fails, restarts it with the previous weights.
  void reload_weights(std::string path, Done done) override;
  std::vector<EngineStats> stats() const override;
  void drain() override;

  // Returns -1 if there is no process.
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
  struct SessionsCommand {
    SessionCommand command;
    SessionsDone done;
  };
  struct PauseCommand {
    PauseMode mode;
    Done done;
  };
  struct DropKeptCache {};
  using Command = std::variant<Accepted, Abort, ResetPrefixCache, DropKeptCache, LookAtPrefixes, LogState,
                               AdapterCommand, SessionsCommand, WakeUp, PauseCommand, Resume>;

  // Data that both callers and the communication thread use. mutex_ guards it.
  struct Shared {
    std::vector<Command> commands{};
    EngineStats stats{};
    RequestId last_id = 0;
    int answers = 0;  // number of unfinished sequences
    bool closed = false;
    // the process died too often and is not restarted
    bool broken = false;
    bool stopping = false;
    // set by pause(), even before the engine receives it
    bool paused = false;
    SleepCycle sleep{};
    LoadCycle load{};
    WeightsChange weights{};
    EnginePresence presence = EnginePresence::starting;
    pid_t pid = -1;

    // Returns an error if the engine has failed or is shutting down.
    Result<> usable() const;
  };

  explicit EngineProcess(EngineProcessOptions options);

  void end_process();
  void post(Command command);
  void change_adapter(ChangeAdapter change, AdapterDone done);
  void report_wanted(bool loaded) const;

  // Only the communication thread calls the functions below. Functions that return an event wait for that
  // event.
  void run();
  EngineEvent next_event();
  EngineEvent run_process();
  Result<EngineEvent> serve_process();
  EngineEvent after_death(const Error& death);
  EngineEvent wait_asleep();
  EngineEvent wait_unloaded();
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
  void take(SessionsCommand&& command);
  void take(const ResetPrefixCache& reset);
  void take(const DropKeptCache& drop);
  void take(PauseCommand&& command);
  void take(const Resume& resume);
  void take(const auto& message) { send(message); }
  template <class Message>
  void send(const Message& message);  // does nothing unless the process is up
  Result<> take(FromEngine&& message);
  Result<> greet(const Ready& ready);
  void end_change_of_weights();
  void end_commands_of_callers(const Error& error);
  void end_all(const Error& error);
  bool stopping() const;
  state::Up* up() { return std::get_if<state::Up>(&state_); }

  const EngineProcessOptions options_;
  std::promise<Result<>> started_;
  EngineInfo info_;  // info of the first process; set before started_
  Wakeup wakeup_;

  mutable std::mutex mutex_;
  std::condition_variable emptied_;
  Shared shared_;

  // Only the communication thread uses the members below.
  EngineState state_;
  ChildProcess child_;
  // memory for KV blocks that outlives the process; no descriptor: not used
  SharedMemory kept_;
  bool start_reported_ = false;
  RestartPolicy restarts_;
  UnfinishedRequests requests_;
  AdapterLedger adapters_;
  PauseLedger pauses_;
  SessionLedger sessions_;

  std::thread thread_;
};

}  // namespace octavo::remote
