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
    Done done{};  // callback of a change that has ended, or empty
    Result<> result{};
  };

  // Returns the folder with the weights of the next process; "": the folder in its command.
  const std::string& path() const { return path_; }

  // Chooses the weights of the next process: those in `path`; "": the current weights, read again. Returns an
  // error if a change is in progress. Takes `done` only if there is no error.
  Result<> choose(std::string path, Done&& done);
  // Called when the next process starts with the chosen weights. Returns false if no weights were chosen.
  bool begin();
  // Called when a process has died. Returns true if the next process gets the previous weights again.
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
