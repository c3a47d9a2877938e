// The session commands of an engine process to which it has not responded. EngineProcess sends them again to
// a restarted engine. Not thread-safe.
#pragma once

#include <string>
#include <utility>

#include "remote/pending_commands.h"
#include "remote/wire.h"

namespace octavo::remote {

class SessionLedger {
 public:
  CommandSessions add(SessionCommand command, SessionsDone done) {
    return {commands_.add({command, std::move(done)}), command};
  }
  void take(SessionsChanged&& changed) {
    const auto command = commands_.take(changed.id);
    if (!command) return;
    if (changed.error) return command->done(Result<>(std::unexpected(*changed.error)));
    command->tell(std::move(changed.sessions));
  }
  void append_all(std::string& out) const {
    for (const auto& [number, command] : commands_)
      append_frame(out, CommandSessions{number, command.command});
  }
  void end_commands(const Error& error) { commands_.end_all(std::unexpected(error)); }

 private:
  struct Command {
    SessionCommand command;
    SessionsDone tell;
    void done(const Result<>& result) const { tell(std::unexpected(result.error())); }
  };

  PendingCommands<Command> commands_;
};

}  // namespace octavo::remote
