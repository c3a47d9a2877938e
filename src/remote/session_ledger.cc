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

// Applies a command that the engine has executed.
void SessionLedger::follow(const SessionCommand& command, const SessionInfo& info, std::int64_t now_us) {
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
    case SessionVerb::release:
      return forget(known);
    case SessionVerb::fork: {
      Known copy = known->second;
      copy.pinned_until_us = 0;
      return add_known({command.key.owner, command.fork_id}, std::move(copy));
    }
    case SessionVerb::list:
    case SessionVerb::restore:
      break;
  }
}

void SessionLedger::turn_ended(const Request& request, std::vector<TokenId> text, std::int64_t now_us) {
  const SessionUse& use = *request.session;
  const auto before = sessions_.find(use.key);
  Known known;
  if (before != sessions_.end()) {
    known.ttl_s = before->second.ttl_s;
    known.pinned_until_us = before->second.pinned_until_us;
    forget(before);
  }
  if (use.demote || !request.identity.adapter.empty() || !request.media.empty()) return;
  if (use.ttl_s > 0) known.ttl_s = use.ttl_s;
  // The engine's default time to live is not known here, so a pin without a time is granted again for an
  // hour.
  constexpr int kPinTtlS = 3600;
  if (use.pin && known.pinned_until_us <= now_us)
    known.pinned_until_us = now_us + (known.ttl_s > 0 ? known.ttl_s : kPinTtlS) * kSecondUs;
  known.text = {.tokens = std::move(text), .identity = request.identity, .priority = use.priority};
  add_known(use.key, std::move(known));
}

void SessionLedger::add_known(const SessionKey& key, Known known) {
  known.turn = ++last_turn_;
  tokens_ += known.text.tokens.size();
  order_.emplace(known.turn, key);
  sessions_.insert_or_assign(key, std::move(known));
  while (tokens_ > kTokensMax) forget(sessions_.find(order_.begin()->second));
}

void SessionLedger::forget(Sessions::iterator session) {
  tokens_ -= session->second.text.tokens.size();
  order_.erase(session->second.turn);
  sessions_.erase(session);
}

void SessionLedger::append_all(std::string& out, std::int64_t now_us) const {
  for (const auto& [turn, key] : order_) {
    const Known& known = sessions_.at(key);
    CommandSessions message{.command = {.verb = SessionVerb::restore, .key = key, .ttl_s = known.ttl_s}};
    message.command.text = known.text;
    message.command.text->pin_ttl_s =
        static_cast<int>(std::max<std::int64_t>(0, (known.pinned_until_us - now_us) / kSecondUs));
    append_frame(out, message);
  }
  for (const auto& [number, command] : commands_) append_frame(out, CommandSessions{number, command.command});
}

}  // namespace octavo::remote
