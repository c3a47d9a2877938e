#include "remote/session_ledger.h"

#include <algorithm>
#include <utility>

namespace octavo::remote {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;

}  // namespace

void SessionLedger::take(SessionsChanged&& changed, std::int64_t now_us) {
  const auto command = commands_.take(changed.id);
  if (!command) return;
  if (changed.error) return command->done(Result<>(std::unexpected(*changed.error)));
  if (changed.sessions.size() == 1) follow(command->command, changed.sessions.front(), now_us);
  command->tell(std::move(changed.sessions));
}

// Returns the time at which the engine ends the session if no request of it arrives.
std::int64_t SessionLedger::ends_us(const Known& known) const {
  return std::max(known.pinned_until_us, known.ended_us + ttl_of(known) * kSecondUs);
}

// Applies a command that the engine has executed.
void SessionLedger::follow(const SessionCommand& command, const SessionInfo& info, std::int64_t now_us) {
  // the session may be unknown, because its first turn has not ended
  if (command.verb == SessionVerb::release)
    return add_known(command.key, {.ended_us = now_us, .released_us = now_us});
  const auto known = sessions_.find(command.key);
  if (known == sessions_.end()) return;
  switch (command.verb) {
    case SessionVerb::pin:
      known->second.pinned_until_us = now_us + (command.ttl_s > 0 ? command.ttl_s : info.ttl_s) * kSecondUs;
      break;
    case SessionVerb::retain:
      known->second.pinned_until_us = 0;
      known->second.ttl_s = info.ttl_s;
      break;
    case SessionVerb::demote:
      return forget(known);
    case SessionVerb::fork: {
      Known copy{.text = known->second.text, .ttl_s = known->second.ttl_s, .ended_us = now_us};
      return add_known({command.key.owner, command.fork_id}, std::move(copy));
    }
    case SessionVerb::list:
    case SessionVerb::release:
    case SessionVerb::restore:
    case SessionVerb::export_part:
    case SessionVerb::import_part:
      break;
  }
}

void SessionLedger::turn_ended(const Request& request, std::vector<TokenId> text, std::int64_t arrived_us,
                               std::int64_t now_us) {
  const SessionUse& use = *request.session;
  const auto before = sessions_.find(use.key);
  Known known{.ended_us = now_us};
  if (before != sessions_.end()) {
    const Known& last = before->second;
    if (arrived_us <= last.released_us) return;
    if (last.released_us == 0 && arrived_us < ends_us(last)) {
      known.ttl_s = last.ttl_s;
      known.pinned_until_us = last.pinned_until_us;
    }
    forget(before);
  }
  if (use.demote || !request.identity.adapter.empty() || !request.media.empty()) return;
  if (use.ttl_s > 0) known.ttl_s = use.ttl_s;
  if (use.pin) known.pinned_until_us = std::max(known.pinned_until_us, now_us + ttl_of(known) * kSecondUs);
  known.text = {.tokens = std::move(text), .identity = request.identity, .priority = use.priority};
  add_known(use.key, std::move(known));
}

void SessionLedger::cache_emptied() {
  for (auto& [key, known] : sessions_) known.pinned_until_us = 0;
}

// Replaces the entry of the key. order_ has exactly one entry for each session.
void SessionLedger::add_known(const SessionKey& key, Known known) {
  if (const auto before = sessions_.find(key); before != sessions_.end()) forget(before);
  known.turn = ++last_turn_;
  tokens_ += known.text.tokens.size();
  order_.emplace(known.turn, key);
  sessions_.emplace(key, std::move(known));
  while (!order_.empty() && (tokens_ > kTokensMax || std::ssize(order_) > limits_.sessions_max))
    forget(sessions_.find(order_.begin()->second));
}

void SessionLedger::forget(Sessions::iterator session) {
  tokens_ -= session->second.text.tokens.size();
  order_.erase(session->second.turn);
  sessions_.erase(session);
}

void SessionLedger::append_all(std::string& out, std::int64_t now_us) const {
  for (const auto& [turn, key] : order_) {
    const Known& known = sessions_.at(key);
    if (known.text.tokens.empty() || ends_us(known) <= now_us) continue;
    CommandSessions message{.command = {.verb = SessionVerb::restore, .key = key, .ttl_s = known.ttl_s}};
    message.command.text = known.text;
    message.command.text->pin_ttl_s =
        static_cast<int>(std::max<std::int64_t>(0, (known.pinned_until_us - now_us) / kSecondUs));
    message.command.text->idle_us = now_us - known.ended_us;
    append_frame(out, message);
  }
  for (const auto& [number, command] : commands_) append_frame(out, CommandSessions{number, command.command});
}

}  // namespace octavo::remote
