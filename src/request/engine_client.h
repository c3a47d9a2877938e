// Interface of an engine. The server, the command line, the bindings, the router and the simulator use
// it. Callers need not know whether the engine runs in this process, in another process or on another host.
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

// What happens to unfinished requests when an engine pauses.
enum class PauseMode : std::uint8_t {
  abort,  // end them with FinishReason::abort
  wait,   // finish them first
  keep,   // stop them now, continue them at resume()
};

class EngineClient {
 public:
  // Called once, on any thread, with the result of an asynchronous operation.
  using Done = std::function<void(Result<>)>;

  virtual ~EngineClient() = default;

  // Properties of the engine's model and its limits on requests.
  virtual EngineInfo info() const = 0;

  // Submits the request. The sink receives outputs until every answer has finished. Returns
  // resource_exhausted if the queue is full, invalid_argument if the request can never fit, or unavailable if
  // the engine drains or has failed. After an error, the sink is never called. Errors that take longer to
  // find, such as a grammar that cannot be compiled, end an answer with Output::error before its first token.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) = 0;

  // Ends the request with FinishReason::abort, at the latest with the next step. Unknown or finished ids
  // are ignored.
  virtual void abort(RequestId id) = 0;

  // Removes every cached prefix that no running request uses.
  virtual void reset_prefix_cache() = 0;

  // Makes stats() report the prefix tree after the next step. Takes time linear in the number of cached
  // blocks.
  virtual void look_at_prefixes() {}
  // Logs the queues, the blocks and the last plan of each engine, but no text of requests.
  virtual void log_state() {}

  // Loads a LoRA adapter, or replaces the one with this name. `done` is called when its weights are in
  // memory, or with the error. Requests may use the name immediately; they wait for the adapter.
  virtual void load_adapter(AdapterSource, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine does not support LoRA adapters"));
  }
  // Removes the adapter. Answers that have begun still use it. Returns not_found if no adapter has this name.
  virtual void unload_adapter(std::string, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine does not support LoRA adapters"));
  }

  // Frees memory until wake_up(). Level 1 frees the KV cache; level 2 also frees the weights, which wake_up()
  // reads again. It rejects new requests immediately (unavailable), waits for running ones, and removes every
  // cached prefix. `done` is called when the engine sleeps, or with an error: unsupported, or a wake_up()
  // during the wait.
  virtual void sleep(int, Done done) { done(failure(ErrorCode::unsupported, "this engine cannot sleep")); }
  // Wakes the engine. `done` is called when the engine accepts requests again; immediately if it is awake.
  virtual void wake_up(Done done) { done({}); }

  // Holds new requests until resume(). `done` is called when the engine computes no request, or with an error
  // if resume() is called during the wait.
  virtual void pause(PauseMode, Done done) {
    done(failure(ErrorCode::unsupported, "this engine cannot pause"));
  }
  virtual void resume() {}

  // Replaces the weights with those in this folder; "": reads the current weights again. Architecture and
  // shapes must be equal. Unfinished requests continue with the new weights: their keys and values are
  // computed again, and every cached prefix is removed. `done` is called when the new weights are in use.
  // After an error, the old weights stay in use.
  virtual void reload_weights(std::string, Done done) {
    done(failure(ErrorCode::unsupported, "this engine cannot replace its weights"));
  }

  // Returns the current statistics of each engine of this client. Any thread.
  virtual std::vector<EngineStats> stats() const = 0;

  // Rejects new requests, and returns when the last request has finished.
  virtual void drain() = 0;

  // Sets the number of engines of this client. New engines accept requests when they are ready. If there are
  // too many engines, the last ones accept no new requests. They end with their last request, or after
  // drain_s seconds; requests that are still unfinished then get an error. `done` is called at the end of the
  // change. It gets an error if an engine cannot start (then no engine is added), if the number is out of
  // range, or if another change is running.
  virtual void scale(int, int, Done done) {
    done(field_failure("new_data_parallel_size", ErrorCode::unsupported,
                       "this server cannot change its number of engines"));
  }
  virtual bool scaling() const { return false; }
};

}  // namespace octavo
