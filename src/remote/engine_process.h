// Client of an engine in a separate process. If the process dies, it is restarted, and each unfinished
// request continues with its next token: no token is lost or repeated.
//
// One thread does all communication and owns the state of the process (engine_state.h), what is unfinished
// (unfinished_requests.h), adapters and pauses. Shared has the data of both callers and the thread.
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
  std::vector<std::string> command;          // arguments of a program with an EngineHost on kChildSocket
  std::string program = "/proc/self/exe";    // path of that program
  std::shared_ptr<EngineMeeting> meeting{};  // engines of other hosts connect to it; null: local process
  int number = 0;                            // number of that engine
  std::shared_ptr<const Socket> expert_port{};  // reserves the port at which engines that share experts meet
  std::uint64_t seed = 0;                    // for requests without a seed
  int hung_after_ms = 10'000;                // an engine that is silent for longer counts as hung
  // An engine that lives longer, or returns a token, did not die from its start. After this time, a death is
  // also less likely to be the fault of a request that it got at its start.
  int young_ms = 10'000;
  bool on_several_hosts = false;  // its ranks are on several hosts: requests are refused during a restart
  // (bytes read, total bytes), called during the first load
  std::function<void(std::size_t, std::size_t)> progress{};
  // Flag of the command for a folder with other weights; "": reload_weights() is refused.
  std::string weights_flag{};
  // Checks a folder without reading the weights; empty disables the check.
  std::function<Result<>(const std::string&)> check_weights{};
};

// The error of calls that need an engine that is awake.
Error asleep();

class EngineProcess final : public EngineClient {
 public:
  // Returns when the engine is ready. Errors: the engine's error if it cannot load, or that it died.
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
  // Level 2 ends the process, and wake_up() starts a new one.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  // Ends the process and starts another with these weights. If that fails, starts one with the previous
  // weights.
  void reload_weights(std::string path, Done done) override;
  std::vector<EngineStats> stats() const override;
  void drain() override;

  // pid of the current process; -1: none.
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

  // Members that callers and the thread share, guarded by mutex_.
  struct Shared {
    std::vector<Command> commands{};
    EngineStats stats{};
    RequestId last_id = 0;
    int answers = 0;      // unfinished
    bool closed = false;  // no more requests
    bool broken = false;  // it died too often
    bool stopping = false;
    bool paused = false;  // after pause(), whether or not the engine has received it
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

  // The thread. Functions that return an event run until it happens.
  void run();
  EngineEvent next_event();
  EngineEvent run_process();
  Result<EngineEvent> serve_process();
  EngineEvent after_death(const Error& death);
  EngineEvent wait_asleep();
  EngineEvent refuse_requests();

  Result<ChildProcess> begin_process();
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
  void send(const Message& message);  // dropped if no process is up
  Result<> take(FromEngine&& message);
  Result<> greet(const Ready& ready);
  void end_change_of_weights();
  void end_commands_of_callers(const Error& error);
  void end_all(const Error& error);
  bool stopping() const;
  state::Up* up() { return std::get_if<state::Up>(&state_); }

  const EngineProcessOptions options_;
  std::promise<Result<>> started_;
  EngineInfo info_;  // info of the first engine; the thread sets it before started_
  Wakeup wakeup_;

  mutable std::mutex mutex_;
  std::condition_variable emptied_;  // Shared::answers is 0
  Shared shared_;

  // Members of the thread.
  EngineState state_;
  ChildProcess child_;
  bool start_reported_ = false;  // started_ has its value
  RestartPolicy restarts_;
  UnfinishedRequests requests_;
  AdapterLedger adapters_;
  PauseLedger pauses_;

  std::thread thread_;
};

}  // namespace octavo::remote
