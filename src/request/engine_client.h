// Interface of an engine. The server, the command line, the bindings, the router and the simulator
// use it. The engine can run in this process, in another process or on another host.
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
#include "request/session.h"

namespace octavo {

// How pause() treats unfinished requests.
enum class PauseMode : std::uint8_t {
  abort,  // ends the requests with FinishReason::abort
  wait,   // lets the requests finish before the engine pauses
  keep,   // stops the requests immediately; resume() continues them
};

class EngineClient {
 public:
  // Called once, on any thread, with the result of an asynchronous operation.
  using Done = std::function<void(Result<>)>;

  virtual ~EngineClient() = default;

  virtual EngineInfo info() const = 0;

  // Submits the request. The sink receives outputs until every answer has finished. Returns
  // resource_exhausted if the queue is full, invalid_argument if the request can never fit, and
  // unavailable if the engine drains or has failed. If submit() returns an error, the sink is never
  // called. Slow checks, such as compiling a grammar, run later; if one fails, the answer ends with
  // Output::error before the first token.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) = 0;

  // Ends the request with FinishReason::abort, at the latest in the next step. Ignores ids of
  // unknown or finished requests.
  virtual void abort(RequestId id) = 0;

  virtual void reset_prefix_cache() = 0;

  // Makes stats() include the prefix tree after the next step. The time is linear in the number of
  // cached blocks.
  virtual void look_at_prefixes() {}
  // Lists or changes sessions. `done` gets not_found if the owner in SessionCommand::key has no session with
  // the id, resource_exhausted if a pin exceeds a quota, and unavailable if the engine is not running.
  virtual void command_sessions(SessionCommand, SessionsDone done) {
    done(failure(ErrorCode::unsupported, "this engine does not support sessions"));
  }
  // Logs the queues, the blocks and the last plan of each engine. Logs no text of requests.
  virtual void log_state() {}

  // Loads a LoRA adapter, or replaces the loaded adapter that has the same name. Calls `done` when
  // the weights are in memory, or with the error. Requests may use the name immediately; they wait
  // until the adapter is loaded.
  virtual void load_adapter(AdapterSource, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine does not support LoRA adapters"));
  }
  // Unloads the adapter. Running answers still use the adapter. Returns not_found if no adapter has
  // this name.
  virtual void unload_adapter(std::string, AdapterDone done) {
    done(failure(ErrorCode::unsupported, "this engine does not support LoRA adapters"));
  }

  // Frees memory until wake_up(). Level 1 frees the KV cache. Level 2 also frees the weights, which
  // wake_up() reads from disk again. The engine rejects new requests immediately (unavailable),
  // waits for running requests, and removes every cached prefix. Calls `done` when the engine
  // sleeps. `done` gets an error if sleep is not supported, or if wake_up() is called while the
  // engine still waits.
  virtual void sleep(int, Done done) { done(failure(ErrorCode::unsupported, "this engine cannot sleep")); }
  // Calls `done` when the engine is awake, or with unavailable: no memory for the KV cache, so it sleeps on.
  virtual void wake_up(Done done) { done({}); }

  // Frees the memory of weights and workspaces until load(): ends the engine's process, also while requests
  // are running. Running and new requests wait. After load(), the running ones continue with their next
  // token. A KV cache that outlives the process (--kv-survives-engine) stays in memory. Calls `done` when the
  // process has ended.
  virtual void unload(Done done) { done(failure(ErrorCode::unsupported, "this engine cannot be unloaded")); }
  // Calls `done` when the engine runs again.
  virtual void load(Done done) { done(failure(ErrorCode::unsupported, "this engine cannot be unloaded")); }
  // Frees the KV cache that stayed after unload().
  virtual void drop_kept_cache() {}

  // Queues new requests until resume(). Calls `done` when no request is running, or with an error
  // if resume() is called first.
  virtual void pause(PauseMode, Done done) {
    done(failure(ErrorCode::unsupported, "this engine cannot pause"));
  }
  virtual void resume() {}

  // Replaces the weights with those in this folder, or reads the current folder again if the path
  // is "". Architecture and shapes must be the same. Unfinished requests continue with the new
  // weights: the engine recomputes their KV, and removes every cached prefix. Calls `done` when the
  // new weights are in use. If loading fails, the old weights stay in use.
  virtual void reload_weights(std::string, Done done) {
    done(failure(ErrorCode::unsupported, "this engine cannot replace its weights"));
  }

  // Returns the current statistics, one element for each engine. May be called from any thread.
  virtual std::vector<EngineStats> stats() const = 0;

  // Rejects new requests, and returns when the last request has finished.
  virtual void drain() = 0;

  // scale(engines, drain_s, done) sets the number of engines of this client. A new engine accepts requests
  // when it is ready. If the number decreases, the last engines accept no new requests, and stop when all
  // their requests have finished. After drain_s seconds they stop anyway, and their unfinished requests get
  // an error. Calls `done` at the end of the change. `done` gets an error if an engine cannot start (then no
  // engine is added), if the number is out of range, or if another change is running.
  virtual void scale(int, int, Done done) {
    done(field_failure("new_data_parallel_size", ErrorCode::unsupported,
                       "this server cannot change its number of engines: start it with --enable-elastic-ep"));
  }
  virtual bool scaling() const { return false; }
};

}  // namespace octavo
