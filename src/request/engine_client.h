// Interface of an engine. The server, the command line, the bindings, the router and the simulator use it.
// The interface hides whether the engine runs in this process, in another process or on another host.
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

// Handling of unfinished requests when an engine pauses.
enum class PauseMode : std::uint8_t {
  abort,  // they end with FinishReason::abort
  wait,   // finish them first
  keep,   // stop them now, continue them at resume()
};

class EngineClient {
 public:
  // Reports the result of an asynchronous operation, once, on any thread.
  using Done = std::function<void(Result<>)>;

  virtual ~EngineClient() = default;

  // Model of the engine and its limits on requests.
  virtual EngineInfo info() const = 0;

  // Submits the request; the sink receives outputs until every answer has finished. Errors: the queue is full
  // (resource_exhausted), the request can never fit (invalid_argument), the engine drains or has failed
  // (unavailable). After an error the sink is never called. Errors that take longer to find, such as a
  // grammar that cannot be enforced, end an answer with Output::error before its first token.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) = 0;

  // Ends the request with FinishReason::abort by the next step at the latest. Unknown or finished ids are
  // ignored.
  virtual void abort(RequestId id) = 0;

  // Drops every cached prefix that no running request uses.
  virtual void reset_prefix_cache() = 0;

  // Makes stats() report the prefix tree after the next step. Takes time linear in the cached blocks.
  virtual void look_at_prefixes() {}
  // Writes queues, blocks and the last plan of each engine to the log; no texts.
  virtual void log_state() {}

  // Loads a LoRA adapter, or replaces the one with this name. `done` reports that its weights are in memory,
  // or the error. Requests may name the adapter at once; they wait for it.
  virtual void load_adapter(AdapterSource, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine takes no LoRA adapters"));
  }
  // Answers that have begun continue with it. Errors: not_found.
  virtual void unload_adapter(std::string, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine takes no LoRA adapters"));
  }

  // Frees memory until wake_up(): level 1 frees the KV cache, level 2 also the weights, which wake_up() reads
  // again. Refuses new requests at once (unavailable), waits for running ones, and drops every cached prefix.
  // `done` reports that the engine sleeps. Errors: unsupported, or a wake_up() during the wait.
  virtual void sleep(int, Done done) { done(failure(ErrorCode::unsupported, "this engine does not sleep")); }
  // `done` reports that the engine takes requests again; at once if it is awake.
  virtual void wake_up(Done done) { done({}); }

  // Holds new requests until resume(). `done` reports that no request is being computed. Errors: a resume()
  // during the wait.
  virtual void pause(PauseMode, Done done) {
    done(failure(ErrorCode::unsupported, "this engine does not pause"));
  }
  virtual void resume() {}

  // Replaces the weights by those of that folder; "": reads the current ones again. Architecture and shapes
  // must be equal. Unfinished requests continue with the new weights: their keys and values are computed
  // again, and every cached prefix is dropped. `done` reports that the new weights are in use. After an error
  // the old ones stay in use.
  virtual void reload_weights(std::string, Done done) {
    done(failure(ErrorCode::unsupported, "this engine keeps the weights that it was started with"));
  }

  // A snapshot of each engine of this client. Any thread.
  virtual std::vector<EngineStats> stats() const = 0;

  // Refuses new requests, and returns when the last one has finished.
  virtual void drain() = 0;

  // Sets the number of engines of this client. New engines take requests when they are ready. Surplus
  // engines, the last ones, take no new requests and end with their last request, or after drain_s seconds
  // with an error for the rest. `done` reports the end of the change. Errors: an engine cannot start (then
  // none is added), the number is out of range, or another change is running.
  virtual void scale(int, int, Done done) {
    done(field_failure("new_data_parallel_size", ErrorCode::unsupported,
                       "the number of engines behind this server does not change"));
  }
  virtual bool scaling() const { return false; }
};

}  // namespace octavo
