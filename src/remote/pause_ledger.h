// Remembers whether an engine process is paused, and the pause commands to which it has not responded.
// EngineProcess sends both to a restarted engine. Not thread-safe.
#pragma once

#include <string>

#include "remote/pending_commands.h"
#include "remote/wire.h"

namespace octavo::remote {

class PauseLedger {
 public:
  Pause add(PauseMode mode, EngineClient::Done done) {
    return {commands_.add({mode, std::move(done)}), mode};
  }
  void take(const Paused& paused) {
    const auto command = commands_.take(paused.id);
    if (!command) return;
    in_force_ |= !paused.error;
    command->done(paused.error ? Result<>(std::unexpected(*paused.error)) : Result<>());
  }
  void resume() {
    in_force_ = false;
    end_commands({ErrorCode::unavailable, "the engine was resumed before it paused", {}});
  }
  // whether the engine has not responded to a command
  bool waiting() const { return commands_.begin() != commands_.end(); }
  void end_commands(const Error& error) { commands_.end_all(std::unexpected(error)); }

  // Appends the pause for a new process. If the client has received the response to its pause, the process
  // must get the pause before the requests, because the client must not receive further tokens. A pause
  // without a response is sent after the requests that were running.
  void append_before_requests(std::string& out) const {
    if (in_force_) append_frame(out, Pause{});
  }
  void append_after_requests(std::string& out) const {
    for (const auto& [number, command] : commands_) append_frame(out, Pause{number, command.mode});
  }

 private:
  struct Command {
    PauseMode mode;
    EngineClient::Done done;
  };

  PendingCommands<Command> commands_;
  bool in_force_ = false;
};

}  // namespace octavo::remote
