// State machine of the process of an EngineProcess.
//
// state   | event           | next state
//   Loading | Ready           | Up
//   Loading | Died            | Loading: the next process; Broken after too many deaths in a row.
//   Up      | Died            | the same as from Loading.
//   Up      | WeightsChosen   | Loading: a process with other weights
//   Up      | FellAsleep      | Asleep
//   Asleep  | Woken           | Loading
//   Up      | UnloadWanted    | Unloaded
//   Unloaded | LoadWanted     | Loading
//   Broken  | LoadWanted      | Loading
//   any     | StopRequested   | Stopped
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/error.h"

namespace octavo::remote {

namespace state {

struct Loading {
  std::optional<Error> error{};
};
struct Up {
  std::int64_t since_us = 0;
  std::int64_t received_us = 0;  // time of the last message from the process
  bool produced = false;
  // number of the sleep() to which the process has not responded; 0: none
  std::uint64_t sleep_ordered = 0;
};
struct Asleep {};  // sleep level 2, without a process
// no process runs; requests wait, and the kept KV cache stays in memory
struct Unloaded {};
// restarted only by load(); all requests get an error
struct Broken {};
struct Stopped {};

}  // namespace state
using EngineState =
    std::variant<state::Loading, state::Up, state::Asleep, state::Unloaded, state::Broken, state::Stopped>;

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
struct UnloadWanted {};
struct LoadWanted {};
struct StopRequested {};

}  // namespace event
using EngineEvent = std::variant<event::Ready, event::Died, event::WeightsChosen, event::FellAsleep,
                                 event::Woken, event::UnloadWanted, event::LoadWanted, event::StopRequested>;

// Implements the table above. Aborts if the table has no row for this pair.
EngineState after(const EngineState& state, const EngineEvent& event);

}  // namespace octavo::remote
