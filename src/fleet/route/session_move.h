// Moves a session to another worker before its next turn: the router exports the session from one worker and
// imports it at the other, part by part. The requests have the client's credentials, so both workers find the
// same owner.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fleet/view/endpoint.h"
#include "http/async_client.h"

namespace octavo::fleet {

struct SessionMoveOptions {
  std::shared_ptr<const Endpoint> from{}, to{};
  std::string session{};
  http::Headers headers{};  // headers of the client's request that workers need
  int timeout_ms = 0;       // for each part
};

// Must be called on the loop's thread. `done` is called once: with true after a move, when the session is
// released at its old worker; with false if the new worker must compute the blocks.
void move_session(http::ClientLoop& loop, SessionMoveOptions options, std::function<void(bool moved)> done);

}  // namespace octavo::fleet
