// The weights of an engine's next process, and a change of them. Not thread-safe: the owner locks.
//
//   state     | choose() | begin()  | the process dies | the process is ready
//   Settled   | Chosen   |          |                  |
//   Chosen    | refused  | Changing |                  |
//   Changing  | refused  |          | Reverting        | Settled, with the new weights
//   Reverting | refused  |          |                  | Settled, with the previous weights
#pragma once

#include <string>
#include <variant>

#include "request/engine_client.h"

namespace octavo::remote {

class WeightsChange {
 public:
  using Done = EngineClient::Done;
  struct Ended {
    Done done{};  // empty if no change has ended
    Result<> result{};
  };

  // Folder with the weights of the next process; "": the folder in its command.
  const std::string& path() const { return path_; }

  // Chooses the weights of a later process: those in `path`; "": the current weights, read again. Errors: a
  // change is in progress. Takes `done` only if there is no error.
  Result<> choose(std::string path, Done&& done);
  // Call when the next process starts: it gets the chosen weights. False: no weights were chosen.
  bool begin();
  // Call when a process has died. True: the next one gets the previous weights again.
  bool revert(const Error& death);
  Ended ready();
  Done give_up();

 private:
  struct Settled {};
  struct Chosen {
    std::string path;
  };
  struct Changing {
    std::string previous;
  };
  struct Reverting {
    Error error;
  };

  std::string path_;
  std::variant<Settled, Chosen, Changing, Reverting> state_;
  Done done_;  // empty in state Settled
};

}  // namespace octavo::remote
