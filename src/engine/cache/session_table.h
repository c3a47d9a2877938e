// The sessions of an engine: which blocks they hold, and which session gives up blocks first.
// docs/design/sessions.md has the rules. Used only on the engine's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cache/reuse_estimate.h"
#include "engine/cache/session_limits.h"
#include "engine/execute/executor.h"
#include "engine/loop/answer.h"
#include "request/session.h"
#include "schedule/scheduler.h"
#include "transfer/session_file.h"

namespace octavo {

class SessionTable final : public BlockReserve {
 public:
  // The scheduler must outlive this object, and takes blocks from it. `exchange` may be null: then no session
  // can be exported or imported.
  SessionTable(Scheduler& scheduler, int engine, const SessionLimits& limits,
               BlockExchange* exchange = nullptr);

  // Sets the time, and ends pins and sessions whose time is over. Call it before the other functions.
  void advance(std::int64_t now_us);
  // A request of a session has arrived. Requests without a session are ignored.
  void begin(const std::shared_ptr<const Accepted>& accepted);
  // The last answer of the request has ended. `text` has the tokens of prompt and output. `cached` is the
  // number of prompt tokens that were cached.
  void end(const Accepted& accepted, std::span<const TokenId> text, int cached);
  // See EngineClient::command_sessions.
  Result<std::vector<SessionInfo>> command(const SessionCommand& command);
  // Releases all blocks, because the cache is emptied. The names stay.
  void let_go_all();

  // Returns the blocks that were imported since the last call, see KvCacheSide::loaded.
  std::vector<std::int32_t> take_imported() { return std::exchange(moves_.imported, {}); }

  const SessionStats& stats();
  // Returns the number of blocks that only sessions use and that requests can take.
  int reclaimable() const override;
  bool can_free(BlockId block) const override;
  bool reclaim(int blocks) override;

 private:
  struct Session {
    PrefixHold* hold = nullptr;        // null: no blocks
    int next_piece = 0;  // first piece of the next part of an import; 0: no import is in progress
    std::int64_t pinned_until_us = 0;  // 0: not pinned
    int ttl_s = 0;
    int priority = 0;
    std::int64_t created_us = 0;
    std::int64_t ended_us = 0;  // end of the last turn
    std::int64_t length = 0;
    std::int64_t turns = 0;
    std::int64_t prompt_tokens = 0, cached_tokens = 0;
    std::weak_ptr<const Accepted> request;  // the newest request; expired: no request is active
    std::uint64_t arrival = 0;              // value of last_arrival_ for the newest request

    bool active() const { return !request.expired(); }
  };
  using Sessions = std::map<SessionKey, Session>;
  struct Victim {
    Sessions::iterator session;
    double value;
  };
  struct Pins {
    int blocks = 0;    // number of blocks, summed over pinned sessions
    int states = 0;    // number of pinned sessions with a recurrent state
    int sessions = 0;  // number of pinned sessions
  };
  struct Owner {
    int sessions = 0;
    int held = 0;  // number of blocks, summed over sessions
    Pins pinned;
    ReuseEstimate pauses;
  };

  Session* find_or_add(const SessionKey& key, const Session* kept = nullptr);
  Sessions::iterator remove(Sessions::iterator session);
  void forget_one(const Session* kept);
  void hold(Sessions::iterator session, PrefixHold* hold);
  void let_go(Sessions::iterator session);
  void count(const SessionKey& key, const Session& session, int sign);
  void count_block(BlockId block, int sign);
  void shorten(Sessions::iterator session);
  void unpin(Sessions::iterator session);
  Result<> check_pin(const SessionKey& key, const Session& session, const PrefixHold& hold) const;
  Result<> pin(Sessions::iterator session, int ttl_s);
  Result<Sessions::iterator> restore(const SessionCommand& command);
  Result<Sessions::iterator> fork(Sessions::iterator session, const std::string& id);
  // Export and import (session_moves.cc):
  Result<BlockFormat> format_of_moves() const;
  Result<> check_imported(Sessions::const_iterator session) const;
  Result<SessionInfo> export_part(Sessions::iterator session, int first) const;
  Result<Sessions::iterator> import_part(const SessionCommand& command);
  Result<Sessions::iterator> begin_import(const SessionKey& key, const SessionPartHeader& header);
  void import_pieces(const PrefixHold& hold, const SessionPart& part);
  Result<> end_import(Sessions::iterator session);
  void keep_limits();
  template <class Done>
  void give_up_until(Done&& done);
  std::vector<Victim> victims();
  double value(const SessionKey& key, const Session& session) const;
  SessionInfo describe(const SessionKey& key, const Session& session) const;
  std::int64_t ends_us(const Session& session) const {
    return session.ended_us + std::int64_t{session.ttl_s} * 1'000'000;
  }

  Scheduler& scheduler_;
  const int engine_;
  const SessionLimits limits_;
  int held_max_, references_max_, states_max_;
  Pins pinned_max_;
  Sessions sessions_;
  std::map<std::string, Owner> owners_;
  std::vector<std::uint16_t> holders_;  // [block]: number of sessions that hold the block
  std::vector<std::uint16_t> pins_;     // [block]: number of pinned sessions that hold the block
  int references_ = 0;  // number of blocks, summed over sessions; a shared block counts once per session
  int states_ = 0;                      // number of holds with a recurrent state
  Pins pinned_;
  std::int64_t now_us_ = 0;
  std::int64_t next_end_us_ = 0;  // no session and no pin ends before this time
  std::uint64_t last_arrival_ = 0;
  std::int64_t counted_us_ = 0;  // time of the last count of idle blocks
  struct {
    BlockExchange* exchange = nullptr;     // null: no session can be exported or imported
    std::vector<std::int32_t> imported{};  // see take_imported()
  } moves_;
  SessionStats stats_;
};

}  // namespace octavo
