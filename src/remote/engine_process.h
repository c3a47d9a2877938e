// Client of an engine in a separate process. If the process dies, it is restarted, and each unfinished
// request continues with its next token: no token is lost or repeated.
//
// One thread does all communication. It stores each unfinished request and its output so far. Sampling
// depends only on the seed and the position, so a new engine that gets both continues with the same bits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/error.h"
#include "remote/child_process.h"
#include "remote/engine_meeting.h"
#include "remote/wakeup.h"
#include "remote/wire.h"
#include "request/engine_client.h"

namespace octavo::remote {

struct EngineProcessOptions {
  std::vector<std::string> command;          // arguments of a program with an EngineHost on kChildSocket
  std::string program = "/proc/self/exe";    // path of that program
  std::shared_ptr<EngineMeeting> meeting{};  // engines of other hosts connect to it; null: local process
  int number = 0;                            // number of that engine
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
  // Checks a folder without reading the weights; empty: no check.
  std::function<Result<>(const std::string&)> check_weights{};
};

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
  struct Reload {
    std::string path;
    Done done;
  };
  using Command = std::variant<Accepted, Abort, ResetPrefixCache, LookAtPrefixes, AdapterCommand, WakeUp,
                               PauseCommand, Resume>;

  struct Unfinished {
    Request request;  // answers_so_far: unfinished answers
    std::shared_ptr<OutputSink> sink;
    int places = 0;
    RequestTimes times;  // arrival and first token, in the first engine that had it
    bool aborting = false;
    int deaths = 0;  // deaths of engines that had it since its last token; young ones count for several
  };

  explicit EngineProcess(EngineProcessOptions options) : options_(std::move(options)) {}

  void run();
  Result<> serve_child();
  Result<ChildProcess> begin_child();
  bool recovers(const Error& death);
  bool falls_asleep();
  bool sleep_on();
  bool is_last_sleep(std::uint64_t number) const;
  void end_sleep(const Result<>& result);
  void end_waking(const Result<>& result);
  bool begins_reload();
  void end_reload(const Result<>& result);
  void take_commands();
  void take(Command&& command);
  void greet(const Ready& ready);
  Result<> take(FromEngine&& message);
  void take(Output&& output);
  void take(AdapterCommand&& command);
  void take(const AdapterChanged& changed);
  void forget_left_adapters();
  void end_adapter_commands(const Error& error);
  void end_pauses(const Result<>& result);
  void change_adapter(ChangeAdapter change, AdapterDone done);
  void post(Command command);
  void end(std::map<RequestId, Unfinished>::iterator place, FinishReason reason,
           const std::optional<Error>& error);
  void end_all(const Error& error);
  void end_requests(const Error& error);
  void give_back(int places);

  const EngineProcessOptions options_;
  std::promise<Result<>> started_;
  EngineInfo info_;  // info of the first engine; the thread sets it before started_
  Wakeup wakeup_;

  // Members of the thread.
  ChildProcess child_;
  bool told_ = false;                // the result of the first start is reported
  bool ready_ = false;               // the engine accepts requests
  std::uint64_t told_to_sleep_ = 0;  // number of the sleep without a response yet; 0: none
  std::int64_t ready_us_ = 0;
  std::int64_t heard_us_ = 0;
  bool got_on_ = false;  // this engine has returned a token
  int deaths_ = 0;       // deaths in a row, without a token or a long life in between
  std::optional<Error> load_error_;
  std::string weights_;                         // weights of the next engine; "": those of the command
  std::optional<std::string> weights_before_;   // previous weights, until an engine has loaded the new ones
  std::optional<Error> reload_error_;           // reported when an engine has the previous weights again
  bool leaving_ = false;                        // this process ends, and another loads other weights
  std::map<RequestId, Unfinished> unfinished_;  // in the order of arrival
  std::map<std::string, std::string> adapters_;               // loaded adapters: path by name
  std::map<std::string, std::string> left_adapters_;          // unloaded, but used by unfinished requests
  std::map<std::uint64_t, AdapterCommand> adapter_commands_;  // without a response yet, in order
  std::uint64_t last_adapter_command_ = 0;
  std::map<std::uint64_t, PauseCommand> pauses_;  // without a response yet, in order
  std::uint64_t last_pause_ = 0;
  bool still_ = false;  // a pause is complete and not resumed: a new engine starts paused

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable emptied_;
  std::vector<Command> commands_;
  EngineStats stats_;
  RequestId last_id_ = 0;
  int places_taken_ = 0;
  bool closed_ = false;
  int sleep_level_ = 0;           // 0: awake; otherwise requests are refused
  std::uint64_t sleeps_ = 0;      // number of the last sleep()
  bool paused_ = false;           // after pause(), whether or not the engine has received it
  bool ending_ = false;           // the process is being stopped for level 2; this cannot be cancelled
  Done slept_, woken_;            // pending callbacks; may be null
  std::optional<Reload> reload_;  // pending reload
  EnginePresence presence_ = EnginePresence::starting;
  bool broken_ = false;  // it died too often
  bool stopping_ = false;
  pid_t pid_ = -1;

  std::thread thread_;
};

}  // namespace octavo::remote
