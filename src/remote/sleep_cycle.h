// State machine of a sleeping engine, from sleep() to the end of wake_up(). The owner must lock.
//
//   state         | sleep()       | wake_up()                | process            | next process is ready
//   Awake         | FallingAsleep | returns at once          |                    |
//   FallingAsleep | refused       | cancels the sleep:       | slept (1): Asleep; |
//                 |               | (1): Waking; (2): Awake  | ends (2): Ending   |
//   Ending        | refused       | waits                    | ended: Asleep, or  |
//                 |               |                          | Waking if it waits |
//   Asleep        | refused       | Waking                   |                    |
//   Waking        | refused       | refused                  | (1) woken: Awake,  | Awake
//                 |               |                          | or Asleep if it    |
//                 |               |                          | lacks memory       |
//
// Functions return callbacks, because the owner must call them without its lock. A returned callback may be
// empty.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "request/engine_client.h"

namespace octavo::remote {

class SleepCycle {
 public:
  using Done = EngineClient::Done;

  // Implements sleep(). Returns an error if the level is invalid or the engine already sleeps. Takes `done`
  // only if there is no error.
  Result<> sleep(int level, Done&& done);

  struct Wake {
    // true: `done` was taken and will be called later; false: the engine is awake now
    bool waits = false;
    // true: the process may sleep at level 1 and needs a WakeUp message
    bool notify_engine = false;
    Done cancelled{};  // callback of a sleep() that was cancelled
  };
  // Implements wake_up(). Returns an error if another wake_up() is in progress.
  Result<Wake> wake(Done&& done);

  // Returns the level that the process must enter when it has no work; 0: it stays awake.
  int due() const;
  std::uint64_t number() const { return number_; }  // number of the last sleep()
  void begin_end();
  // The process sleeps, or failed to. Does nothing if wake_up() has cancelled sleep `number`.
  Done slept(std::uint64_t number, const Result<>& result);
  // Level 2: the process has ended.
  Done ended();
  // The next process is ready, or level 1: the process has responded to WakeUp.
  Done woken(const Result<>& result);
  // The engine stops or is broken. Returns all callbacks.
  std::vector<Done> give_up();

  bool awake() const { return std::holds_alternative<Awake>(state_); }
  bool ending() const { return std::holds_alternative<Ending>(state_); }
  bool waking() const { return std::holds_alternative<Waking>(state_); }
  int wanted_level() const;  // level of the last sleep() until the engine is awake; 0: awake
  // level at which the engine sleeps now; 0: it does not sleep yet, or is awake
  int reached_level() const;

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
    int level;
    Done woken;
  };

  std::variant<Awake, FallingAsleep, Ending, Asleep, Waking> state_;
  std::uint64_t number_ = 0;
};

}  // namespace octavo::remote
