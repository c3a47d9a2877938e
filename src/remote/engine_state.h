// States of an engine's process, and the events that change them.
//
//   state   | event           | next state
//   Loading | Ready           | Up
//   Loading | Died            | Loading: the next process; Broken after too many deaths in a row
//   Up      | Died            | the same as from Loading
//   Up      | WeightsChosen   | Loading: a process with other weights
//   Up      | FellAsleep      | Asleep
//   Asleep  | Woken           | Loading
//   any     | StopRequested   | Stopped
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/error.h"

namespace octavo::remote {

namespace state {

// The process starts and reads its weights.
struct Loading {
  std::optional<Error> error{};
};
// The process accepts requests.
struct Up {
  std::int64_t since_us = 0;
  std::int64_t heard_us = 0;        // time of its last message
  bool produced = false;            // whether the process has returned a token
  std::uint64_t sleep_ordered = 0;  // number of the sleep() without a response yet; 0: no sleep() is pending
};
struct Asleep {};   // asleep at level 2: there is no process
struct Broken {};   // no process will be started again; all requests are rejected
struct Stopped {};  // the client ends the process

}  // namespace state
using EngineState = std::variant<state::Loading, state::Up, state::Asleep, state::Broken, state::Stopped>;

namespace event {

struct Ready {
  std::int64_t now_us = 0;
};
struct Died {
  bool restart = true;
};
struct WeightsChosen {};
struct FellAsleep {};
struct Woken {};
struct StopRequested {};

}  // namespace event
using EngineEvent = std::variant<event::Ready, event::Died, event::WeightsChosen, event::FellAsleep,
                                 event::Woken, event::StopRequested>;

// Returns the next state in the table above. Aborts if the table does not have this pair.
EngineState after(const EngineState& state, const EngineEvent& event);

}  // namespace octavo::remote
