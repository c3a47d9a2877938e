// Remembers the sessions of an engine process, and the commands to which it has not responded. EngineProcess
// sends both to a restarted engine, which then holds the blocks that have survived. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "remote/pending_commands.h"
#include "remote/wire.h"

namespace octavo::remote {

class SessionLedger {
 public:
  // Maximum memory of all texts. The least recently used sessions are forgotten first.
  static constexpr std::size_t kTokensMax = std::size_t{16} << 20;

  CommandSessions add(SessionCommand command, SessionsDone done) {
    return {commands_.add({command, std::move(done)}), command};
  }
  void take(SessionsChanged&& changed, std::int64_t now_us);
  // See UnfinishedRequests::tell_turns. Sessions with adapters or media are not remembered, because their
  // identity depends on data that the engine reads.
  void turn_ended(const Request& request, std::vector<TokenId> text, std::int64_t now_us);
  // Appends the messages for a restarted engine.
  void append_all(std::string& out, std::int64_t now_us) const;
  void end_commands(const Error& error) { commands_.end_all(std::unexpected(error)); }

 private:
  struct Command {
    SessionCommand command;
    SessionsDone tell;
    void done(const Result<>& result) const { tell(std::unexpected(result.error())); }
  };
  struct Known {
    SessionText text;
    int ttl_s = 0;
    std::int64_t pinned_until_us = 0;
    std::uint64_t turn = 0;
  };
  using Sessions = std::map<SessionKey, Known>;

  void follow(const SessionCommand& command, const SessionInfo& info, std::int64_t now_us);
  void add_known(const SessionKey& key, Known known);
  void forget(Sessions::iterator session);

  PendingCommands<Command> commands_;
  Sessions sessions_;
  std::map<std::uint64_t, SessionKey> order_;  // by Known::turn
  std::uint64_t last_turn_ = 0;
  std::size_t tokens_ = 0;
};

}  // namespace octavo::remote
