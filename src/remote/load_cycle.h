// Whether an EngineProcess has a process, from unload() to the end of load(). The owner must lock.
//
//   state     | unload()  | load()  | process has ended | next process is ready
//   Loaded    | Unloading | refused |                   |
//   Unloading | refused   | refused | Unloaded          |
//   Unloaded  | refused   | Loading |                   |
//   Loading   | refused   | refused |                   | Loaded
//   any, and the engine breaks: Unloaded
//
// Functions return callbacks, because the owner must call them without its lock. A returned callback may be
// empty.
#pragma once

#include <utility>

#include "request/engine_client.h"

namespace octavo::remote {

class LoadCycle {
 public:
  using Done = EngineClient::Done;

  // unload() and load() return an error if the state refuses the call. They take `done` only if there is no
  // error.
  Result<> unload(Done&& done) { return change(State::loaded, State::unloading, std::move(done)); }
  Result<> load(Done&& done) { return change(State::unloaded, State::loading, std::move(done)); }

  // The process has ended.
  Done ended() { return arrive(State::unloading, State::unloaded); }
  // The next process is ready.
  Done ready() { return arrive(State::loading, State::loaded); }
  // Called when the engine stops or is broken: returns the callback of the call that is in progress. load()
  // can start a broken engine again.
  Done give_up() {
    state_ = State::unloaded;
    return std::exchange(done_, {});
  }

  bool loaded() const { return state_ == State::loaded; }
  bool unloading() const { return state_ == State::unloading; }
  bool loading() const { return state_ == State::loading; }

 private:
  enum class State { loaded, unloading, unloaded, loading };

  Result<> change(State from, State to, Done&& done) {
    if (state_ != from)
      return failure(ErrorCode::unavailable, "the engine {}",
                     state_ == State::loaded     ? "is loaded already"
                     : state_ == State::unloaded ? "is unloaded already"
                                                 : "is still being loaded or unloaded");
    state_ = to;
    done_ = std::move(done);
    return {};
  }
  Done arrive(State from, State to) {
    if (state_ != from) return {};
    state_ = to;
    return std::exchange(done_, {});
  }

  State state_ = State::loaded;
  Done done_{};
};

}  // namespace octavo::remote
