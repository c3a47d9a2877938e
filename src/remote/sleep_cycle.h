// The sleep of an engine, from sleep() to the end of wake_up(). No lock: the owner has one.
//
//   state         | sleep()       | wake_up()                | process            | next process is ready
//   Awake         | FallingAsleep | returns at once          |                    |
//   FallingAsleep | refused       | Awake, cancels the sleep | slept (1): Asleep; |
//                 |               |                          | ends (2): Ending   |
//   Ending        | refused       | waits                    | ended: Asleep, or  |
//                 |               |                          | Waking if it waits |
//   Asleep        | refused       | level 1: Awake;          |                    |
//                 |               | level 2: Waking          |                    |
//   Waking        | refused       | refused                  |                    | Awake
//
// Callbacks are returned, because they must not run under the owner's lock. An empty one is not to be called.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "request/engine_client.h"

namespace octavo::remote {

class SleepCycle {
 public:
  using Done = EngineClient::Done;

  // sleep(). Errors: the level; it sleeps already. Takes `done` only without an error.
  Result<> sleep(int level, Done&& done);

  struct Wake {
    bool waits = false;        // `done` was taken; otherwise the engine is awake now
    bool tell_engine = false;  // its process may sleep at level 1
    Done cancelled{};          // callback of a sleep() that has not begun
  };
  // wake_up(). Errors: it is waking up already.
  Result<Wake> wake(Done&& done);

  // Level that the process is to enter as soon as it has no work, or 0.
  int due() const;
  std::uint64_t number() const { return number_; }  // of the last sleep()
  // The process begins to end, for level 2.
  void begin_end();
  // The process sleeps (sleep `number`) or cannot. Ignored if a wake_up() has cancelled that sleep.
  Done slept(std::uint64_t number, const Result<>& result);
  // The process has ended, for level 2.
  Done ended();
  // The next process is ready.
  Done woken();
  // The engine ends or is broken. Returns all callbacks.
  std::vector<Done> give_up();

  bool awake() const { return std::holds_alternative<Awake>(state_); }
  bool ending() const { return std::holds_alternative<Ending>(state_); }
  bool waking() const { return std::holds_alternative<Waking>(state_); }
  int wanted_level() const;   // level of the last sleep(), until it wakes; 0: awake
  int reached_level() const;  // level at which it sleeps; 0 before that, or awake

 private:
  struct Awake {};
  struct FallingAsleep {
    int level;
    Done slept;
  };
  struct Ending {
    Done slept, woken;
  };
  struct Asleep {
    int level;
  };
  struct Waking {
    Done woken;
  };

  std::variant<Awake, FallingAsleep, Ending, Asleep, Waking> state_;
  std::uint64_t number_ = 0;
};

}  // namespace octavo::remote
