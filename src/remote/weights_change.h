// The weights of an engine's next process, and a change of them. No lock: the owner has one.
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

  // Folder of the next process; "": that of its command.
  const std::string& path() const { return path_; }

  // A later process shall have the weights of `path`; "": the current weights, read again. Errors: a change
  // is under way. Takes `done` only without an error.
  Result<> choose(std::string path, Done&& done);
  // The next process has the chosen weights. False: there is no choice.
  bool begin();
  // A process has died. True: the next one has the previous weights again.
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
  Done done_;  // not in state Settled
};

}  // namespace octavo::remote
