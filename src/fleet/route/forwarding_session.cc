// The part of Forwarding that sends the requests of a session to the worker that has its blocks. If this
// worker is full or does not accept requests, another worker gets the blocks before the request.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/hash.h"
#include "fleet/decide/eligible.h"
#include "fleet/route/forwarding.h"
#include "fleet/route/session_move.h"

namespace octavo::fleet {
namespace {

constexpr int kMoveTimeoutMs = 20'000;  // timeout of the copy of each part of a session

int requests_at(const Balancer& balancer, EndpointId id) {
  Load load = balancer.load(id);
  load += balancer.load_of_peers(id);
  return load.requests;
}

// Returns whether the worker has many more requests than another worker that serves the model. The
// constants only exclude differences that end soon, because a move costs the copy of all blocks.
bool is_full(const Balancer& balancer, const FleetView& view, const Member& worker, std::string_view model) {
  constexpr int kTimes = 2, kMore = 8;
  int least = std::numeric_limits<int>::max();
  for (const Member& member : view.members)
    if (member.state.availability == Availability::available && serves(*member.endpoint, model))
      least = std::min(least, requests_at(balancer, member.id));
  return least < std::numeric_limits<int>::max() / kTimes - kMore &&
         requests_at(balancer, worker.id) > kTimes * least + kMore;
}

// Returns whether the worker may still answer: it is available, it drains, or it has left the fleet.
bool may_export(const Member* worker) {
  return worker == nullptr || worker->state.availability == Availability::available ||
         worker->state.availability == Availability::draining;
}

}  // namespace

// Returns "" if the request has no session. Clients with different credentials have different sessions.
std::string Forwarding::session_key() const {
  const std::string& session = in_.route().session;
  if (session.empty() || context_.options.pd.enabled) return {};
  const std::string key = fmt::format("{}\n{}\n{}", in_.tenant(),
                                      in_.request().headers.find("Authorization").value_or(""), session);
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(key)), 0);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

// Returns true if the request is sent later, after the move of its session.
bool Forwarding::follow_session() {
  const std::string key = session_key();
  const WorkerOfId::Worker home = key.empty() || !owner_.empty() ? nullptr : context_.sessions.find(key);
  if (!home || in_.request().headers.find("X-SMG-Target-Worker")) return false;
  const auto view = balancer_.view();
  const Member* member = view->find(home->name);
  const bool available = member && member->state.availability == Availability::available;
  if (available && !is_full(balancer_, *view, *member, in_.route().model)) {
    owner_ = home->name;
    return false;
  }
  // A route of the session goes to its worker, and needs no move.
  if (!in_.route().stored_id.empty()) {
    if (available) owner_ = home->name;
    return false;
  }
  if (!may_export(member)) return false;
  ChoiceOptions options = choice_options(Role::both);
  std::vector<EndpointId> excluded = history_.tried;
  if (member) excluded.push_back(member->id);
  options.excluded = excluded;
  auto choice = balancer_.choose(in_.route(), options);
  if (!choice) {
    owner_ = home->name;
    return false;
  }
  balancer_.ended(choice->booking, Outcome::neither);  // the worker is booked again after the move
  owner_ = choice->endpoint->name;
  if (choice->endpoint->url == home->url) return false;
  move_session(loop_,
               {.from = home,
                .to = choice->endpoint,
                .session = in_.route().session,
                .headers = in_.call_request(*choice->endpoint, nullptr, 0, false).headers,
                .timeout_ms = std::min(in_.left_ms(), kMoveTimeoutMs)},
               [self = shared_from_this()](bool moved) { self->send_after_move(moved); });
  return true;
}

void Forwarding::send_after_move(bool moved) {
  context_.metrics.session_moved(moved);
  if (is<Over>()) return;
  if (!send()) no_worker();
}

// Called when the worker has answered.
void Forwarding::note_session(const Attempt& attempt) {
  if (attempt.answer.status / 100 != 2) return;
  if (const std::string key = session_key(); !key.empty())
    context_.sessions.learn(key, attempt.choice.endpoint);
}

}  // namespace octavo::fleet
