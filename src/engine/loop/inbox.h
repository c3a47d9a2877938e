// Where other threads leave their wishes for the engine thread, and where the number of unfinished requests
// is bounded.
#pragma once

#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "engine/loop/grammar_compiler.h"
#include "request/adapter_source.h"
#include "request/engine_client.h"
#include "request/request.h"
#include "schedule/sequence.h"

namespace octavo {

inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();  // of now_us()

struct Submission {
  RequestId id = 0;
  Request request;
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
};

// A request's grammar is ready, or wrong.
struct GrammarReady {
  RequestId id = 0;
  CompiledGrammar grammar;
};

// Something to do with LoRA adapters.
struct AdapterCommand {
  AdapterSource source;
  bool unload = false;
  AdapterDone done;
};

// Told once how falling asleep went.
using SleepDone = std::function<void(Result<>)>;

// EngineClient::pause.
struct Pause {
  PauseMode mode = PauseMode::keep;
  EngineClient::Done done;
};

// What has come in since the last look.
struct Mail {
  std::vector<Submission> submissions;
  std::vector<GrammarReady> grammars;
  std::vector<SequenceId> masks;  // that MaskWorker has made
  std::vector<RequestId> aborts;
  std::vector<AdapterCommand> adapters;
  std::vector<SleepDone> sleeps;
  std::vector<Pause> pauses;
  bool frozen = false;  // by PauseMode::keep: no step is to be run
  bool woken = false;
  bool reset_prefix_cache = false;
  bool look_at_prefixes = false;
};

class Inbox {
 public:
  // `places`: answers that may be unfinished at a time; a request takes one for each of its own.
  explicit Inbox(int places) : places_(places) {}

  // Any thread. Errors: resource_exhausted when places run short, unavailable after close().
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink);
  // Any thread. Never lost while the request is unfinished, ignored otherwise.
  void abort(RequestId id);
  void request_reset();
  void look_at_prefixes();
  void command(AdapterCommand command);
  void wake();  // something else is to be done
  // Refuses new requests until wake_up(). The engine thread hears of it.
  void sleep(SleepDone done);
  void wake_up();
  bool asleep() const;
  // Requests that come from now on stay here until resume(), unless they are aborted.
  void pause(Pause wanted);
  void resume();
  bool paused() const;
  // The grammar compiler's thread.
  void grammar_ready(GrammarReady ready);
  // The mask worker's thread.
  void mask_ready(SequenceId sequence);

  // The engine thread: swaps what is there into `mail` (emptied first). Sleeps until there is something, this
  // time has come, or stop() was called. False after stop().
  bool take(Mail& mail, std::int64_t until_us);
  // The engine thread: all answers of the request have finished.
  void finished(RequestId id);

  void close();       // refuse new requests from now on
  void wait_empty();  // until no request is unfinished
  void stop();        // make take() say false

 private:
  void hold_back(Mail& mail);

  struct Unfinished {
    int answers = 0;
    bool aborting = false;
  };

  mutable std::mutex mutex_;
  std::condition_variable mail_came_;
  std::condition_variable emptied_;
  Mail mail_;
  std::unordered_map<RequestId, Unfinished> unfinished_;
  int places_;
  int taken_ = 0;
  RequestId last_id_ = 0;
  bool closed_ = false;
  bool asleep_ = false;
  bool paused_ = false, frozen_ = false;
  RequestId last_before_pause_ = 0;
  bool stopped_ = false;
};

}  // namespace octavo
