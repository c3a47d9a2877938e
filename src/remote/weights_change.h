// State machine for reload_weights(): which weights the next process of an engine loads. The owner must
// lock.
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
    Done done{};  // callback of reload_weights(), or empty
    Result<> result{};
  };

  // Returns the folder of weights for the next process; "": the folder in the command line.
  const std::string& path() const { return path_; }

  // path: folder of the new weights; "": reads the current folder again. Returns an error if another change
  // is in progress. Takes `done` only if there is no error.
  Result<> choose(std::string path, Done&& done);
  // Called when the next process starts. Returns true if it loads the chosen weights.
  bool begin();
  // Called when a process died. Returns true if the next process loads the previous weights.
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
  Done done_;
};

}  // namespace octavo::remote
