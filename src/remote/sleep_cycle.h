// The sleep of an engine, from sleep() to the end of wake_up(). Not thread-safe: the owner locks.
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
// Functions return the callbacks, because the owner must call them without holding its lock. Do not call an
// empty callback.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "request/engine_client.h"

namespace octavo::remote {

class SleepCycle {
 public:
  using Done = EngineClient::Done;

  // Implements sleep(). Returns an error if the level is invalid, or if the engine sleeps already. Takes
  // `done` only if there is no error.
  Result<> sleep(int level, Done&& done);

  struct Wake {
    bool waits = false;        // true: the wake-up has taken `done`; false: the engine is awake now
    bool tell_engine = false;  // whether the process may sleep at level 1, so that it must get a message
    Done cancelled{};          // callback of a cancelled sleep() that had not begun
  };
  // Implements wake_up(). Returns an error if the engine is already waking up.
  Result<Wake> wake(Done&& done);

  // Returns the level that the process must enter as soon as it has no work; 0: the process stays awake.
  int due() const;
  std::uint64_t number() const { return number_; }  // number of the last sleep()
  // Called for level 2 when the process begins to end.
  void begin_end();
  // Called when the process has entered sleep `number`, or cannot. Ignored if a wake_up() has cancelled this
  // sleep.
  Done slept(std::uint64_t number, const Result<>& result);
  // Called for level 2 when the process has ended.
  Done ended();
  // Called when the next process is ready.
  Done woken();
  // Called when the engine ends or is broken. Returns all callbacks.
  std::vector<Done> give_up();

  bool awake() const { return std::holds_alternative<Awake>(state_); }
  bool ending() const { return std::holds_alternative<Ending>(state_); }
  bool waking() const { return std::holds_alternative<Waking>(state_); }
  int wanted_level() const;   // level of the last sleep() until the engine is awake again; 0: awake
  int reached_level() const;  // level at which the engine sleeps now; 0: it is awake, or has not entered the
                              // sleep yet

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
