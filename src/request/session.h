// Sessions: names for the cached prefixes of conversations. docs/design/sessions.md has the rules.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "request/cache_identity.h"
#include "request/sampling_params.h"

namespace octavo {

inline constexpr std::size_t kSessionIdBytesMax = 256;
inline constexpr int kSessionTtlMaxS = 86'400;
// Maximum of the absolute value of a priority. Adding 1 to the priority doubles the value of the session's
// blocks.
inline constexpr int kSessionPriorityMax = 10;

// Sessions of different owners (tenants) are independent, even if they have the same id.
struct SessionKey {
  std::string owner;
  std::string id;
  auto operator<=>(const SessionKey&) const = default;
};

// The session of a request, and hints about its blocks.
struct SessionUse {
  SessionKey key{};
  int ttl_s = 0;  // time in seconds after the last turn for which blocks are held; 0: the default
  int priority = 0;
  bool pin = false;     // pins the blocks when the answer ends, if the quotas allow it
  bool demote = false;  // holds no blocks after the answer, because the session will not continue soon
};

// `restore` is for a restarted engine, which holds the blocks of an earlier engine's session again.
// `export_part` and `import_part` move a session to another server (docs/design/sessions.md).
enum class SessionVerb : std::uint8_t {
  list,
  pin,
  retain,
  demote,
  release,
  fork,
  restore,
  export_part,
  import_part
};

// A session that a restarted engine restores.
struct SessionText {
  std::vector<TokenId> tokens;  // prompt and output of the last turn
  CacheIdentity identity{};
  int priority = 0;
  int pin_ttl_s = 0;         // remaining time of the pin; 0: not pinned
  std::int64_t idle_us = 0;  // time since the last turn ended
};

struct SessionCommand {
  SessionVerb verb = SessionVerb::list;
  SessionKey key{};       // list with an empty id: all sessions of the owner
  std::string fork_id{};  // name of the new session, for SessionVerb::fork
  int ttl_s = 0;          // for pin, retain and restore; 0: keeps the time of the session, or the default
  std::optional<SessionText> text{};  // for restore
  std::string after{};                // for list: only sessions of the owner with a larger id
  int limit = 0;                      // for list: maximum number of sessions; 0: no limit
  int first = 0;                      // for export_part: index of the first piece of the part
  std::string part{};                 // for import_part (transfer/session_file.h)
  std::optional<int> engine{};        // for import_part, see Request::engine
};

struct SessionInfo {
  SessionKey key{};
  int engine = 0;           // EngineInfo::index
  std::int64_t tokens = 0;  // number of tokens whose blocks the session holds
  std::int64_t length = 0;  // number of prompt and output tokens of the last turn
  int blocks = 0;           // number of blocks that the session holds
  bool pinned = false;
  bool active = false;  // whether a request of the session is unfinished
  bool importing = false;  // whether parts of an import are missing
  int ttl_s = 0;
  int priority = 0;
  std::int64_t age_us = 0;   // time since the session was created
  std::int64_t idle_us = 0;  // time since the last turn ended
  std::int64_t turns = 0;
  // prompt tokens of all turns, and the part of them that was in the cache
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::string part{};  // result of export_part
  int next_piece = 0;  // first piece of the part that follows; 0: no part follows
};

// Gauges and counters of all sessions of an engine.
struct SessionStats {
  int sessions = 0;
  int pinned = 0;
  int held_blocks = 0;    // blocks that sessions hold; a block of several sessions counts once
  int pinned_blocks = 0;  // blocks of pinned sessions; a block of several sessions counts for each
  int idle_blocks = 0;    // held blocks that no request uses and that requests can take
  std::int64_t turns = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t reclaimed_blocks = 0;  // blocks that requests took from retained sessions
  std::int64_t refused_pins = 0;
  std::int64_t expired = 0;  // sessions whose time to live has ended
};

// Gets the sessions after the command: all listed ones, or the changed one. Called once, on any thread.
using SessionsDone = std::function<void(Result<std::vector<SessionInfo>>)>;

}  // namespace octavo
