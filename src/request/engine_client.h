// The one way to an engine. Server, command line, bindings, router and simulator speak this, and do not know
// whether the engine is in this process, in another, or on another host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "request/adapter_source.h"
#include "request/engine_info.h"
#include "request/engine_stats.h"
#include "request/request.h"

namespace octavo {

// What becomes of unfinished requests when an engine pauses.
enum class PauseMode : std::uint8_t {
  abort,  // they end with FinishReason::abort
  wait,   // they are finished first
  keep,   // they stay as they are, and go on behind it
};

class EngineClient {
 public:
  // Told once, on any thread, how something that takes a while went.
  using Done = std::function<void(Result<>)>;

  virtual ~EngineClient() = default;

  // What it runs, and its limits on requests.
  virtual EngineInfo info() const = 0;

  // Hands the request over; outputs arrive at the sink until each of its answers has finished. Errors: the
  // queue is full (resource_exhausted), the request can never fit (invalid_argument), the engine is draining
  // or broken (unavailable). After an error the sink is never called. What takes longer to find out, as
  // whether a grammar can be enforced, comes as an answer's end with Output::error before any token.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) = 0;

  // Ends the request with FinishReason::abort by the next step at the latest. Unknown or finished ids are
  // ignored.
  virtual void abort(RequestId id) = 0;

  // Drops every cached prefix that no running request uses.
  virtual void reset_prefix_cache() = 0;

  // Soon, stats() has what the prefix cache holds. Linear in its blocks, and done between two steps: for
  // people who look.
  virtual void look_at_prefixes() {}

  // Makes a LoRA adapter known by its name, in place of an older one of that name. `done` hears when its weights
  // are in memory, or what is wrong with it. Requests that name it may come at once, and wait for it.
  virtual void load_adapter(AdapterSource, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine takes no LoRA adapters"));
  }
  // Answers that have begun with it go on. Errors: not_found.
  virtual void unload_adapter(std::string, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine takes no LoRA adapters"));
  }

  // Gives memory back until wake_up(): level 1 that of the KV cache, level 2 that of the weights, too, which
  // are then read again. Refuses new requests (unavailable) at once, waits until the last one has ended, and
  // forgets every cached prefix. `done` hears when it sleeps. Errors: it cannot, or a wake_up() came before.
  virtual void sleep(int, Done done) { done(failure(ErrorCode::unsupported, "this engine does not sleep")); }
  // `done` hears when it takes requests again; at once where it is awake.
  virtual void wake_up(Done done) { done({}); }

  // Until resume() nothing is computed of requests that come; they wait. `done` hears when nothing is
  // computed of others, either. Errors: a resume() came before.
  virtual void pause(PauseMode, Done done) {
    done(failure(ErrorCode::unsupported, "this engine does not pause"));
  }
  virtual void resume() {}

  // Reads the weights of that folder in place of the model's; "": those in use anew. Architecture and shapes are the
  // model's. What is unfinished goes on with the weights that are there then: its keys and values are computed anew,
  // and every cached prefix is forgotten. `done` hears when they are in use. Errors: they are not the model's, or cannot
  // be read; those before stay in use.
  virtual void reload_weights(std::string, Done done) {
    done(failure(ErrorCode::unsupported, "this engine keeps the weights that it was started with"));
  }

  // A snapshot of each engine behind this client; any thread, at any time.
  virtual std::vector<EngineStats> stats() const = 0;

  // Refuses new requests from now on, and returns when the last one has finished.
  virtual void drain() = 0;

  // How many engines there are behind this client. Those that come take requests as soon as they are ready;
  // those that go, the last ones, take none from now on, and end when theirs have ended, or after drain_s
  // seconds: then the rest of their requests end with an error. `done` hears when all are there, or have
  // gone. Errors: an engine cannot start, and none is added; the number is beyond a limit; another change is
  // under way.
  virtual void scale(int, int, Done done) {
    done(field_failure("new_data_parallel_size", ErrorCode::unsupported,
                       "the number of engines behind this server does not change"));
  }
  virtual bool scaling() const { return false; }
};

}  // namespace octavo
