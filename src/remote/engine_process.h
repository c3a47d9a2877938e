// The client of an engine in a process of its own, which may die: it is started again, and every unfinished
// request goes on with the token that comes next, none lost and none repeated.
//
// A thread does all talking. It knows each unfinished request and what its answers have said so far; draws
// depend on the seed and the place alone, so a new engine that is told both goes on bit for bit.
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
  std::vector<std::string> command;            // of a program that runs an EngineHost on kChildSocket
  std::string program = "/proc/self/exe";      // that it is
  std::shared_ptr<EngineMeeting> meeting{};    // engines of other hosts come to it; null: started here
  int number = 0;                              // of that engine
  std::uint64_t seed = 0;                      // for requests that bring none
  int hung_after_ms = 10'000;                  // without a sign of life the engine is taken for hung
  // An engine that lives so long, or says a token, has not died of how it started; and one that lives so
  // long, not so likely of a request that it was given at once.
  int young_ms = 10'000;
  bool on_several_hosts = false;  // its ranks: requests are refused while it is started again
  std::function<void(std::size_t, std::size_t)> progress{};  // bytes read, bytes in all; while it first loads
  // The command's flag for the folder of other weights; "": there is none, and reload_weights() is refused.
  std::string weights_flag{};
  std::function<Result<>(const std::string&)> check_weights{};  // without reading them; empty: they are tried
};

class EngineProcess final : public EngineClient {
 public:
  // Returns when the engine is ready. Errors: what it says when it cannot load, or that it died.
  static Result<std::unique_ptr<EngineProcess>> start(EngineProcessOptions options);
  // Ends what is unfinished, and the process.
  ~EngineProcess() override;

  EngineInfo info() const override { return info_; }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void abort(RequestId id) override;
  void reset_prefix_cache() override;
  void look_at_prefixes() override;
  void load_adapter(AdapterSource source, AdapterDone done) override;
  void unload_adapter(std::string name, AdapterDone done) override;
  // Level 2 ends the process, and wake_up() starts another.
  void sleep(int level, Done done) override;
  void wake_up(Done done) override;
  void pause(PauseMode mode, Done done) override;
  void resume() override;
  // Ends the process and starts another with these weights, or, where it cannot, with those before.
  void reload_weights(std::string path, Done done) override;
  std::vector<EngineStats> stats() const override;
  void drain() override;

  // Of the process at this moment; -1: none.
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
    Request request;  // answers_so_far: of those that have not ended
    std::shared_ptr<OutputSink> sink;
    int places = 0;
    RequestTimes times;  // arrival and first token, of the first engine that it had
    bool aborting = false;
    int deaths = 0;  // of engines that had it, since its last token; young ones count for several
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
  EngineInfo info_;  // of the first engine; the thread sets it before started_
  Wakeup wakeup_;

  // Of the thread.
  ChildProcess child_;
  bool told_ = false;               // how the first start went
  bool ready_ = false;              // the engine takes requests
  std::uint64_t told_to_sleep_ = 0;  // and has not answered yet: the number of the sleep; 0: no
  std::int64_t ready_us_ = 0;
  std::int64_t heard_us_ = 0;
  bool got_on_ = false;             // a token has come from this engine
  int deaths_ = 0;                  // one after the other, without a token or some time in between
  std::optional<Error> load_error_;
  std::string weights_;                        // that an engine is started with; "": the command's
  std::optional<std::string> weights_before_;  // to be gone back to, until an engine has read the others
  std::optional<Error> reload_error_;          // why it could not: to be told when one has those before again
  bool leaving_ = false;                       // this process ends, for one with other weights
  std::map<RequestId, Unfinished> unfinished_;  // in the order of arrival
  std::map<std::string, std::string> adapters_;  // loaded: the path of each name
  std::map<std::string, std::string> left_adapters_;          // unloaded, and of unfinished requests
  std::map<std::uint64_t, AdapterCommand> adapter_commands_;  // not answered yet, in order
  std::uint64_t last_adapter_command_ = 0;
  std::map<std::uint64_t, PauseCommand> pauses_;  // not answered yet, in order
  std::uint64_t last_pause_ = 0;
  bool still_ = false;  // a pause was answered, and nobody has resumed since: an engine that is new begins with it

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable emptied_;
  std::vector<Command> commands_;
  EngineStats stats_;
  RequestId last_id_ = 0;
  int places_taken_ = 0;
  bool closed_ = false;
  int sleep_level_ = 0;  // 0: awake; otherwise no requests are taken
  std::uint64_t sleeps_ = 0;  // the number of the last sleep()
  bool paused_ = false;       // since a pause(), whether or not the engine has heard of it
  bool ending_ = false;  // the process is stopped for level 2, which cannot be taken back any more
  Done slept_, woken_;   // of those who wait for it; null: nobody does
  std::optional<Reload> reload_;  // alike
  EnginePresence presence_ = EnginePresence::starting;
  bool broken_ = false;  // it died too often
  bool stopping_ = false;
  pid_t pid_ = -1;

  std::thread thread_;
};

}  // namespace octavo::remote
