// Messages from other threads to the engine thread. The inbox also limits the number of unfinished answers.
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

// A time of now_us() that is never reached.
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

struct Submission {
  RequestId id = 0;
  Request request;
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
};

struct GrammarReady {
  RequestId id = 0;
  CompiledGrammar grammar;
};

struct AdapterCommand {
  AdapterSource source;
  bool unload = false;
  AdapterDone done;
};

struct SessionRequest {
  SessionCommand command;
  SessionsDone done;
};

// A call of EngineClient::pause() that has not completed.
struct Pause {
  PauseMode mode = PauseMode::keep;
  EngineClient::Done done;
};

struct Mail {
  std::vector<Submission> submissions;
  std::vector<GrammarReady> grammars;
  std::vector<SequenceId> masks;
  std::vector<RequestId> aborts;
  std::vector<AdapterCommand> adapters;
  std::vector<SessionRequest> sessions;
  std::vector<EngineClient::Done> sleeps, wakes;
  std::vector<Pause> pauses;
  bool frozen = false;  // PauseMode::keep is in effect, so the engine runs no step
  bool woken = false;
  bool reset_prefix_cache = false;
  bool look_at_prefixes = false;
  bool log_state = false;
};

class Inbox {
 public:
  // `capacity` is the maximum number of unfinished answers.
  explicit Inbox(int capacity) : capacity_(capacity) {}

  // Thread-safe. Returns resource_exhausted if too many answers are unfinished, and unavailable after
  // close().
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink);
  // Thread-safe. An abort after the end of the request is ignored.
  void abort(RequestId id);
  void request_reset();
  void look_at_prefixes();
  void log_state();
  void command(AdapterCommand command);
  void command(SessionRequest request);
  void wake();  // makes take() return
  // Rejects new requests until woken(), and notifies the engine thread.
  void sleep(EngineClient::Done done);
  void wake_up(EngineClient::Done done);
  // Keeps new requests in the inbox until resume(). Aborts are still delivered.
  void pause(Pause wanted);
  void resume();
  bool paused() const;
  // Called on the grammar compiler's thread.
  void grammar_ready(GrammarReady ready);
  // Called on the mask worker's thread.
  void mask_ready(SequenceId sequence);

  // Called on the engine thread. Waits until a message arrives, until_us passes or stop() is called.
  // Replaces the content of `mail` with the messages. Returns false after stop().
  bool take(Mail& mail, std::int64_t until_us);
  // Called on the engine thread when all answers of the request have ended.
  void finished(RequestId id);
  // Called on the engine thread when the engine is awake. Requests are accepted again, unless another sleep()
  // has arrived.
  void woken();

  void close();
  void wait_empty();
  void stop();        // makes take() return false

 private:
  void hold_back(Mail& mail);

  struct Unfinished {
    int answers = 0;
    bool aborting = false;
  };

  mutable std::mutex mutex_;
  std::condition_variable mail_arrived_;
  std::condition_variable emptied_;
  Mail mail_;
  std::unordered_map<RequestId, Unfinished> unfinished_;
  int capacity_;
  int taken_ = 0;
  RequestId last_id_ = 0;
  bool closed_ = false;
  bool asleep_ = false;
  bool paused_ = false, frozen_ = false;
  RequestId last_before_pause_ = 0;
  bool stopped_ = false;
};

}  // namespace octavo
