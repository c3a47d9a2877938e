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

// Values of the engine's flags (engine/cache/session_limits.h).
struct SessionLedgerLimits {
  int sessions_max = 4096;
  int ttl_s = 3600;  // time to live of sessions whose requests set none
};

class SessionLedger {
 public:
  // Maximum number of tokens of all texts. The least recently used sessions are forgotten first.
  static constexpr std::size_t kTokensMax = std::size_t{16} << 20;

  explicit SessionLedger(const SessionLedgerLimits& limits = {}) : limits_(limits) {}

  CommandSessions add(SessionCommand command, SessionsDone done) {
    return {commands_.add({command, std::move(done)}), command};
  }
  void take(SessionsChanged&& changed, std::int64_t now_us);
  // See UnfinishedRequests::tell_turns. Sessions with adapters or media are not remembered, because their
  // identity depends on data that the engine reads. `arrived_us`: arrival of the request.
  void turn_ended(const Request& request, std::vector<TokenId> text, std::int64_t arrived_us,
                  std::int64_t now_us);
  // Called when the engine empties its cache, which ends all pins.
  void cache_emptied();
  // Appends the messages for a restarted engine. Leaves out sessions whose time is over.
  void append_all(std::string& out, std::int64_t now_us) const;
  // whether the engine has not responded to a command
  bool waiting() const { return commands_.begin() != commands_.end(); }
  void end_commands(const Error& error) { commands_.end_all(std::unexpected(error)); }

 private:
  struct Command {
    SessionCommand command;
    SessionsDone tell;
    void done(const Result<>& result) const { tell(std::unexpected(result.error())); }
  };
  struct Known {
    SessionText text{};
    int ttl_s = 0;  // 0: the default
    std::int64_t pinned_until_us = 0;
    std::int64_t ended_us = 0;  // end of the last turn
    // time at which the client released the session; 0: not released. A request that arrived before this time
    // does not create the session again.
    std::int64_t released_us = 0;
    std::uint64_t turn = 0;
  };
  using Sessions = std::map<SessionKey, Known>;

  int ttl_of(const Known& known) const { return known.ttl_s > 0 ? known.ttl_s : limits_.ttl_s; }
  std::int64_t ends_us(const Known& known) const;
  void follow(const SessionCommand& command, const SessionInfo& info, std::int64_t now_us);
  void add_known(const SessionKey& key, Known known);
  void forget(Sessions::iterator session);

  const SessionLedgerLimits limits_;
  PendingCommands<Command> commands_;
  Sessions sessions_;
  std::map<std::uint64_t, SessionKey> order_;  // by Known::turn
  std::uint64_t last_turn_ = 0;
  std::size_t tokens_ = 0;
};

}  // namespace octavo::remote
