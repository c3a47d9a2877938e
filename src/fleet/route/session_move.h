// Moves a session to another worker before its next turn: the router exports the session from one worker and
// imports it at the other, part by part. Both calls have the client's credentials, so both workers find the
// same owner.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fleet/view/endpoint.h"
#include "http/async_client.h"

namespace octavo::fleet {

struct SessionMoveOptions {
  std::shared_ptr<const Endpoint> from{}, to{};
  std::string session{};
  http::Headers headers{};  // headers of the client's request that workers need
  int timeout_ms = 0;       // time of the whole move
};

// Must be called on the loop's thread. `done` is called once: with true after a move, when the session is
// released at its old worker; with false if the new worker must compute the blocks. The returned function
// cancels the move if it has not ended, and then calls `done(false)`.
std::function<void()> move_session(http::ClientLoop& loop, SessionMoveOptions options,
                                   std::function<void(bool moved)> done);

// The moves that have not ended, and the requests that wait for them. Two moves of one session at a time
// would destroy each other's imports. Thread-safe.
class RunningMoves {
 public:
  using Waiter = std::function<void(const std::string& worker)>;  // may run on any thread

  // Returns true if no move of the session runs: the caller must start it and call end(). Otherwise, end()
  // calls the waiter.
  bool begin(const std::string& session, Waiter waiter);
  // `worker` is the name of the worker that gets the next turn.
  void end(const std::string& session, const std::string& worker);
  void clear();  // destroys all waiters without a call

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Waiter>> waiters_;  // by session
};

}  // namespace octavo::fleet
