#include "engine/cache/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/quoted_text.h"

namespace octavo {
namespace {

constexpr double kWaits = std::numeric_limits<double>::infinity();  // value of a session whose request waits
// Requests that need blocks take 1/kReclaimPart of the cache from sessions at once, even if they need less,
// because sorting the sessions takes time.
constexpr int kReclaimPart = 128;
// Shared blocks need no memory of the cache, but each session has its own block table. So the sum of the
// blocks of all sessions is limited to this multiple of held_max_, and the sum of one owner's sessions to
// half of it.
constexpr int kReferencesPart = 8;
constexpr std::int64_t kPartUs = 10'000'000;  // time in which the next part of an import is expected
constexpr std::int64_t kCountUs = 20'000;  // interval of the count of idle blocks, which takes linear time

int part_of(int blocks, double fraction) { return static_cast<int>(fraction * blocks); }

std::string name_of(const SessionKey& key) { return quoted_text(key.id); }

}  // namespace

SessionTable::SessionTable(Scheduler& scheduler, int engine, const SessionLimits& limits,
                           BlockExchange* exchange)
    : scheduler_(scheduler), engine_(engine), limits_(limits), moves_{.exchange = exchange} {
  const SchedulerOptions& o = scheduler.options();
  held_max_ = o.enable_prefix_caching ? part_of(o.num_blocks, limits.held_fraction) : 0;
  const int longest = blocks_of_sequence(o, longest_sequence(o));
  const int pinnable = std::clamp(o.num_blocks - longest, 0, part_of(o.num_blocks, limits.pinned_fraction));
  references_max_ = static_cast<int>(
      std::min<std::int64_t>(std::int64_t{kReferencesPart} * held_max_, std::numeric_limits<int>::max() / 2));
  states_max_ = o.saved_states / 2;
  pinned_max_ = {.blocks = std::min(pinnable, held_max_),
                 .states = std::min(part_of(o.saved_states, limits.pinned_fraction), states_max_),
                 .sessions = part_of(limits.sessions_max, std::min(limits.pinned_fraction, 0.5))};
  holders_.assign(static_cast<std::size_t>(o.num_blocks), 0);
  pins_.assign(static_cast<std::size_t>(o.num_blocks), 0);
  if (held_max_ > 0) scheduler.take_from(*this);
}

void SessionTable::advance(std::int64_t now_us) {
  now_us_ = now_us;
  if (now_us < next_end_us_) return;
  next_end_us_ = std::numeric_limits<std::int64_t>::max();
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    Session& s = it->second;
    if (s.pinned_until_us > 0 && s.pinned_until_us <= now_us) unpin(it);
    if (!s.active() && s.pinned_until_us == 0 && ends_us(s) <= now_us) {
      ++stats_.expired;
      it = remove(it);
      continue;
    }
    next_end_us_ = std::min(next_end_us_, std::max({s.pinned_until_us, ends_us(s), now_us + 1'000'000}));
    if (s.pinned_until_us > 0) next_end_us_ = std::min(next_end_us_, s.pinned_until_us);
    ++it;
  }
}

void SessionTable::begin(const std::shared_ptr<const Accepted>& accepted) {
  const auto& use = accepted->request.session;
  if (!use || held_max_ == 0) return;
  Session* const s = find_or_add(use->key);
  if (s == nullptr) return;
  if (s->turns > 0 && !s->active()) owners_.at(use->key.owner).pauses.observe(now_us_ - s->ended_us);
  if (use->ttl_s > 0) s->ttl_s = use->ttl_s;
  s->priority = use->priority;
  s->request = accepted;
  s->arrival = ++last_arrival_;
  next_end_us_ = 0;
}

void SessionTable::end(const Accepted& accepted, std::span<const TokenId> text, int cached) {
  const auto& use = accepted.request.session;
  if (!use) return;
  const auto it = sessions_.find(use->key);
  if (it == sessions_.end()) return;  // The client released the session while its request was running.
  Session& s = it->second;
  s.ended_us = now_us_;
  if (s.request.lock().get() == &accepted) s.request.reset();
  if (text.empty()) return;  // The request was aborted before it was scheduled, so it has no text.
  const auto prompt = std::ssize(accepted.request.prompt);
  s.length = std::ssize(text);
  ++s.turns, ++stats_.turns;
  s.prompt_tokens += prompt, stats_.prompt_tokens += prompt;
  s.cached_tokens += cached, stats_.cached_tokens += cached;
  next_end_us_ = 0;
  if (use->demote) return let_go(it);
  PrefixHold* const held = scheduler_.hold(
      text, accepted.identity, 0,
      media_identities(accepted.identity, accepted.request.media, scheduler_.options().block_size));
  if (held == nullptr) return;
  const bool pinned = s.pinned_until_us > 0;
  if (pinned && !check_pin(it->first, s, *held)) {
    // The new turn's blocks are not pinned. The blocks of the earlier turn stay pinned.
    ++stats_.refused_pins;
    return scheduler_.let_go(held);
  }
  const std::int64_t pinned_until_us = s.pinned_until_us;
  hold(it, held);
  if (use->pin && !pin(it, s.ttl_s)) ++stats_.refused_pins;
  // A turn may extend a pin, but never ends it earlier.
  s.pinned_until_us = std::max(s.pinned_until_us, pinned_until_us);
  keep_limits();
}

Result<std::vector<SessionInfo>> SessionTable::command(const SessionCommand& command) {
  std::vector<SessionInfo> found;
  if (command.verb == SessionVerb::list && command.key.id.empty()) {
    const std::string& owner = command.key.owner;
    for (auto it = sessions_.upper_bound({owner, command.after}); it != sessions_.end(); ++it) {
      const bool of_other = !owner.empty() && it->first.owner != owner;
      if (of_other || (command.limit > 0 && std::ssize(found) == command.limit)) break;
      found.push_back(describe(it->first, it->second));
    }
    return found;
  }
  auto it = sessions_.find(command.key);
  if (command.verb == SessionVerb::restore) {
    TRY(it, restore(command));
  } else if (command.verb == SessionVerb::import_part) {
    TRY(it, import_part(command));
  } else if (it == sessions_.end()) {
    return failure(ErrorCode::not_found,
                   "the session {} does not exist: a request with this session_id creates it",
                   name_of(command.key));
  }
  switch (command.verb) {
    case SessionVerb::list:
    case SessionVerb::restore:
    case SessionVerb::import_part:
      break;
    case SessionVerb::export_part: {
      TRY(SessionInfo info, export_part(it, command.first));
      found.push_back(std::move(info));
      return found;
    }
    case SessionVerb::pin:
      TRY_VOID(pin(it, command.ttl_s > 0 ? command.ttl_s : it->second.ttl_s));
      break;
    case SessionVerb::retain:
      if (command.ttl_s > 0) it->second.ttl_s = command.ttl_s;
      if (it->second.pinned_until_us > 0) unpin(it);
      break;
    case SessionVerb::demote:
      let_go(it);
      break;
    case SessionVerb::release:
      found.push_back(describe(it->first, it->second));
      remove(it);
      return found;
    case SessionVerb::fork:
      TRY(it, fork(it, command.fork_id));
      break;
  }
  next_end_us_ = 0;
  found.push_back(describe(it->first, it->second));
  return found;
}

void SessionTable::let_go_all() {
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) let_go(it);
}

const SessionStats& SessionTable::stats() {
  stats_.sessions = static_cast<int>(sessions_.size());
  if (stats_.held_blocks == 0) {
    stats_.idle_blocks = 0;
  } else if (now_us_ - counted_us_ >= kCountUs) {
    stats_.idle_blocks = reclaimable();
    counted_us_ = now_us_;
  }
  return stats_;
}

// Adding a session may remove another one, but not `kept`.
SessionTable::Session* SessionTable::find_or_add(const SessionKey& key, const Session* kept) {
  if (const auto found = sessions_.find(key); found != sessions_.end()) return &found->second;
  if (std::ssize(sessions_) >= limits_.sessions_max) forget_one(kept);
  if (std::ssize(sessions_) >= limits_.sessions_max) return nullptr;
  Session& s = sessions_[key];
  s.created_us = s.ended_us = now_us_;
  s.ttl_s = limits_.ttl_s;
  ++owners_[key.owner].sessions;
  return &s;
}

// Removes one session that has neither a pin nor a request. Among the owners with such a session, it takes
// the owner with the most sessions. It removes the session of this owner that has paused longest.
void SessionTable::forget_one(const Session* kept) {
  const auto order = [&](Sessions::iterator it) {
    return std::tuple(-owners_.at(it->first.owner).sessions, std::string_view(it->first.owner),
                      it->second.ended_us);
  };
  auto first = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    const Session& s = it->second;
    if (&s == kept || s.active() || s.pinned_until_us > 0) continue;
    if (first == sessions_.end() || order(it) < order(first)) first = it;
  }
  if (first != sessions_.end()) remove(first);
}

SessionTable::Sessions::iterator SessionTable::remove(Sessions::iterator session) {
  let_go(session);
  const auto owner = owners_.find(session->first.owner);
  if (--owner->second.sessions == 0) owners_.erase(owner);
  return sessions_.erase(session);
}

void SessionTable::count_block(BlockId block, int sign) {
  const auto at = static_cast<std::size_t>(block);
  if (sign < 0 && --holders_[at] == 0) --stats_.held_blocks;
  if (sign > 0 && holders_[at]++ == 0) ++stats_.held_blocks;
}

// Adds the blocks of the session to all counts (sign 1), or subtracts them (sign -1).
void SessionTable::count(const SessionKey& key, const Session& session, int sign) {
  const bool pinned = session.pinned_until_us > 0;
  for (int g = 0; g < scheduler_.cache().group_count(); ++g)
    for (const BlockId block : session.hold->blocks.table(g)) {
      if (block == kNoBlock) continue;
      count_block(block, sign);
      auto& pins = pins_[static_cast<std::size_t>(block)];
      if (pinned) pins = static_cast<std::uint16_t>(pins + sign);
    }
  const int blocks = sign * session.hold->blocks.held();
  const int states = session.hold->state_slot != kNoState ? sign : 0;
  Owner& owner = owners_[key.owner];
  owner.held += blocks;
  references_ += blocks;
  states_ += states;
  if (!pinned) return;
  for (Pins* const pins : {&owner.pinned, &pinned_}) {
    pins->blocks += blocks;
    pins->states += states;
    pins->sessions += sign;
  }
  stats_.pinned_blocks = pinned_.blocks;
  stats_.pinned = pinned_.sessions;
}

// Replaces the blocks of the session.
void SessionTable::hold(Sessions::iterator session, PrefixHold* hold) {
  Session& s = session->second;
  PrefixHold* const before = std::exchange(s.hold, nullptr);
  if (before != nullptr) {
    s.hold = before;
    count(session->first, s, -1);
  }
  s.hold = hold;
  s.next_piece = 0;
  count(session->first, s, 1);
  if (before != nullptr) scheduler_.let_go(before);
}

void SessionTable::let_go(Sessions::iterator session) {
  Session& s = session->second;
  if (s.hold != nullptr) {
    count(session->first, s, -1);
    scheduler_.let_go(std::exchange(s.hold, nullptr));
  }
  s.next_piece = 0;
  s.pinned_until_us = 0;
}

// Releases the last block, or all blocks if a shorter prefix is of no use.
void SessionTable::shorten(Sessions::iterator session) {
  Session& s = session->second;
  const int blocks = s.hold->cached - 1;
  if (blocks <= 0 || s.next_piece > 0 || !scheduler_.can_shorten()) return let_go(session);
  for (int g = 0; g < scheduler_.cache().group_count(); ++g) count_block(s.hold->blocks.table(g).back(), -1);
  owners_[session->first.owner].held -= scheduler_.cache().group_count();
  references_ -= scheduler_.cache().group_count();
  scheduler_.shorten(*s.hold, blocks);
}

void SessionTable::unpin(Sessions::iterator session) {
  Session& s = session->second;
  if (s.hold != nullptr) count(session->first, s, -1);
  s.pinned_until_us = 0;
  if (s.hold != nullptr) count(session->first, s, 1);
}

// Returns an error if the session cannot be pinned with this hold.
Result<> SessionTable::check_pin(const SessionKey& key, const Session& session,
                                 const PrefixHold& hold) const {
  if (hold.blocks.held() == 0)
    return failure(ErrorCode::resource_exhausted,
                   "the session {} is shorter than a block of {} tokens, so it has no blocks to pin: pin it "
                   "after a longer turn",
                   name_of(key), scheduler_.options().block_size);
  const auto pins_of = [](const PrefixHold& of) {
    return Pins{.blocks = of.blocks.held(), .states = of.state_slot != kNoState, .sessions = 1};
  };
  const Pins added = pins_of(hold);
  const Pins own = session.pinned_until_us > 0 && session.hold != nullptr ? pins_of(*session.hold) : Pins();
  const auto check = [&](std::string_view what, int Pins::* count, int exist) -> Result<> {
    const int change = added.*count - own.*count;
    const int all = pinned_.*count + change, of_owner = owners_.at(key.owner).pinned.*count + change;
    const int limit = pinned_max_.*count;
    if (added.*count > 0 && of_owner > limit / 2)
      return failure(ErrorCode::resource_exhausted,
                     "the pinned {} of this tenant would be {}, and the limit is {} of {} {}: release a "
                     "session, or set a larger --session-pin-fraction",
                     what, of_owner, limit / 2, exist, what);
    if (added.*count > 0 && all > limit)
      return failure(ErrorCode::resource_exhausted,
                     "the pinned {} of all tenants would be {}, and the limit is {} of {} {}: retry later, "
                     "or set a larger --session-pin-fraction",
                     what, all, limit, exist, what);
    return {};
  };
  TRY_VOID(check("blocks", &Pins::blocks, scheduler_.options().num_blocks));
  TRY_VOID(check("states", &Pins::states, scheduler_.options().saved_states));
  return check("sessions", &Pins::sessions, limits_.sessions_max);
}

Result<> SessionTable::pin(Sessions::iterator session, int ttl_s) {
  Session& s = session->second;
  TRY_VOID(check_imported(session));
  if (s.hold == nullptr)
    return failure(ErrorCode::resource_exhausted,
                   "the session {} has no cached blocks to pin: send its next turn, then pin it",
                   name_of(session->first));
  TRY_VOID(check_pin(session->first, s, *s.hold));
  count(session->first, s, -1);
  s.pinned_until_us = now_us_ + std::int64_t{ttl_s} * 1'000'000;
  count(session->first, s, 1);
  return {};
}

// If a request of the session has arrived since the restart, the session is already in use and is not
// restored.
Result<SessionTable::Sessions::iterator> SessionTable::restore(const SessionCommand& command) {
  const bool known = sessions_.contains(command.key);
  if (held_max_ == 0 || find_or_add(command.key) == nullptr)
    return failure(ErrorCode::resource_exhausted, "all {} sessions are in use", limits_.sessions_max);
  const auto it = sessions_.find(command.key);
  if (known || !command.text || command.text->tokens.empty()) return it;
  Session& s = it->second;
  const SessionText& text = *command.text;
  if (command.ttl_s > 0) s.ttl_s = command.ttl_s;
  s.created_us = s.ended_us = now_us_ - text.idle_us;
  s.priority = text.priority;
  s.length = std::ssize(text.tokens);
  if (PrefixHold* held = scheduler_.hold(text.tokens, text.identity.digest(), 0)) hold(it, held);
  if (text.pin_ttl_s > 0 && !pin(it, text.pin_ttl_s)) ++stats_.refused_pins;
  keep_limits();
  return it;
}

Result<SessionTable::Sessions::iterator> SessionTable::fork(Sessions::iterator session,
                                                            const std::string& id) {
  const SessionKey key{session->first.owner, id};
  if (sessions_.contains(key))
    return invalid("session_id", "the session {} already exists: choose another name for the fork",
                   name_of(key));
  TRY_VOID(check_imported(session));
  const Session& from = session->second;
  const int blocks = from.hold != nullptr ? from.hold->blocks.held() : 0;
  const int held = owners_.at(key.owner).held + blocks, held_max = references_max_ / 2;
  if (held > held_max)
    return failure(ErrorCode::resource_exhausted,
                   "the sessions of this tenant would hold {} blocks, where each fork counts fully, and the "
                   "limit is {}: release a session, or set a larger --session-fraction",
                   held, held_max);
  if (find_or_add(key, &session->second) == nullptr)
    return failure(ErrorCode::resource_exhausted, "all {} sessions are in use: release a session",
                   limits_.sessions_max);
  const auto added = sessions_.find(key);
  Session& s = added->second;
  s.ttl_s = from.ttl_s;
  s.priority = from.priority;
  s.length = from.length;
  if (from.hold != nullptr) hold(added, scheduler_.share(*from.hold));
  keep_limits();
  return added;
}

void SessionTable::keep_limits() {
  give_up_until([&] {
    return stats_.held_blocks <= held_max_ && references_ <= references_max_ && states_ <= states_max_;
  });
}

bool SessionTable::can_free(BlockId block) const {
  const auto at = static_cast<std::size_t>(block);
  return holders_[at] > 0 && pins_[at] == 0 && scheduler_.cache().pool.references(block) == holders_[at];
}

int SessionTable::reclaimable() const {
  int sum = 0;
  for (BlockId block = 0; block < scheduler_.cache().pool.total(); ++block) sum += can_free(block);
  return sum;
}

bool SessionTable::reclaim(int blocks) {
  const BlockPool& pool = scheduler_.cache().pool;
  const auto usable = [&] { return pool.free() - scheduler_.lent(); };
  const int before = usable(), held = stats_.held_blocks;
  const int wanted = before + blocks + pool.total() / kReclaimPart;
  give_up_until([&] { return usable() >= wanted; });
  stats_.reclaimed_blocks += held - stats_.held_blocks;
  return usable() > before;
}

// Takes blocks from the sessions until done() returns true. Owners that hold more than an equal share give
// first.
template <class Done>
void SessionTable::give_up_until(Done&& done) {
  if (done() || sessions_.empty()) return;
  const int share = held_max_ / static_cast<int>(owners_.size());
  const std::vector<Victim> order = victims();
  for (const bool above_share : {true, false})
    for (const Victim& victim : order) {
      const Owner& owner = owners_.at(victim.session->first.owner);
      while (victim.session->second.hold != nullptr && (!above_share || owner.held > share)) {
        if (done()) return;
        shorten(victim.session);
      }
    }
}

// Returns the sessions that can give up blocks, lowest value first. Among sessions whose requests wait, the
// newest request comes first.
std::vector<SessionTable::Victim> SessionTable::victims() {
  std::vector<Victim> order;
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it)
    if (it->second.hold != nullptr && it->second.pinned_until_us == 0)
      order.push_back({it, value(it->first, it->second)});
  std::ranges::sort(order, [](const Victim& a, const Victim& b) {
    return a.value != b.value ? a.value < b.value : a.session->second.arrival > b.session->second.arrival;
  });
  return order;
}

double SessionTable::value(const SessionKey& key, const Session& session) const {
  const std::int64_t idle_us = now_us_ - session.ended_us;
  if (session.active() || (session.next_piece > 0 && idle_us < kPartUs)) return kWaits;
  const double left = 1 - static_cast<double>(idle_us) / (session.ttl_s * 1e6);
  const double cost = 1 + limits_.attention_weight * static_cast<double>(session.hold->tokens.size());
  return std::max(left, 0.0) * cost * std::exp2(session.priority) *
         owners_.at(key.owner).pauses.chance(idle_us);
}

SessionInfo SessionTable::describe(const SessionKey& key, const Session& s) const {
  return {.key = key,
          .engine = engine_,
          .tokens = s.hold != nullptr && s.next_piece == 0 ? std::ssize(s.hold->tokens) : 0,
          .length = s.length,
          .blocks = s.hold != nullptr ? s.hold->blocks.held() : 0,
          .pinned = s.pinned_until_us > 0,
          .active = s.active(),
          .importing = s.next_piece > 0,
          .ttl_s = s.ttl_s,
          .priority = s.priority,
          .age_us = now_us_ - s.created_us,
          .idle_us = now_us_ - s.ended_us,
          .turns = s.turns,
          .prompt_tokens = s.prompt_tokens,
          .cached_tokens = s.cached_tokens};
}

}  // namespace octavo
