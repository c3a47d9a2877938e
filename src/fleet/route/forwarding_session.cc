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
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

constexpr int kMoveTimeoutMs = 20'000;  // time of the whole move of a session

int requests_at(const Balancer& balancer, EndpointId id) {
  Load load = balancer.load(id);
  load += balancer.load_of_peers(id);
  return load.requests;
}

// Returns whether the worker has many more requests than another worker that serves the model. The constants
// ignore small differences, which end soon, because a move costs the copy of all blocks.
bool is_full(const Balancer& balancer, const FleetView& view, const Member& worker, std::string_view model) {
  constexpr int kTimes = 2, kMore = 8;
  int least = std::numeric_limits<int>::max();
  for (const Member& member : view.members)
    if (member.state.availability == Availability::available && serves(*member.endpoint, model))
      least = std::min(least, requests_at(balancer, member.id));
  return least < std::numeric_limits<int>::max() / kTimes - kMore &&
         requests_at(balancer, worker.id) > kTimes * least + kMore;
}

// Returns whether the worker may still answer: it is available, it drains, or it has left the fleet
// (LeftWorkers).
bool may_export(const Member* worker) {
  return worker == nullptr || worker->state.availability == Availability::available ||
         worker->state.availability == Availability::draining;
}

}  // namespace

// Returns "" if the request has no session. Clients with different credentials have different sessions. A
// session of two models has two workers, because a worker may serve only one of them.
std::string Forwarding::session_key(const std::string& model) const {
  const std::string& session = in_.route().session;
  if (session.empty() || context_.options.pd.enabled) return {};
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", in_.tenant(), in_.request().headers.find("Authorization").value_or(""),
                  model, session);
  const Hash128 hash = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(key)), 0);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

// Returns true if the request is sent later, after the move of its session.
bool Forwarding::follow_session() {
  const std::string key = session_key(in_.route().model);
  const WorkerOfId::Worker home = key.empty() || !owner_.empty() ? nullptr : context_.sessions.find(key);
  if (!home || in_.request().headers.find("X-SMG-Target-Worker")) return false;
  const auto view = balancer_.view();
  const Member* member = view->find(home->name);
  if (!serves(member ? *member->endpoint : *home, in_.route().model)) return false;
  const bool available = member && member->state.availability == Availability::available;
  if (!in_.route().stored_id.empty()) {
    // A request to a session route goes to the session's worker, without a move. Any other stored id may be
    // at any worker, so the router searches all workers.
    const openai::Route* route = openai::find_route(in_.request().path);
    if (available && route && route->session) owner_ = home->name;
    return false;
  }
  if (available && !is_full(balancer_, *view, *member, in_.route().model)) {
    owner_ = home->name;
    return false;
  }
  if (!may_export(member)) return false;
  const auto send_later = [&loop = loop_, self = shared_from_this()](const std::string& worker) mutable {
    loop.post([self = std::move(self), worker] { self->send_to(worker); });
  };
  const bool begun = context_.moves.begin(key, send_later);
  if (!begun) return true;
  const std::shared_ptr<const Endpoint> to = target_of_move(member);
  const Member* target = to ? view->find(to->name) : nullptr;
  const bool stays =
      available && (!target || requests_at(balancer_, target->id) >= requests_at(balancer_, member->id));
  owner_ = stays || !to ? home->name : to->name;
  if (stays || !to || to->url == home->url) {
    context_.moves.end(key, owner_);
    return false;
  }
  cancel_move_ =
      move_session(loop_,
                   {.from = home,
                    .to = to,
                    .session = in_.route().session,
                    .headers = in_.call_request(*to, nullptr, 0, false).headers,
                    .timeout_ms = std::min(in_.left_ms(), kMoveTimeoutMs)},
                   [self = shared_from_this(), to](bool moved) { self->send_after_move(moved, to); });
  return true;
}

// Returns null if no other worker can get the session of `member`, which may be null.
std::shared_ptr<const Endpoint> Forwarding::target_of_move(const Member* member) {
  ChoiceOptions options = choice_options(Role::both);
  std::vector<EndpointId> excluded = history_.tried;
  if (member) excluded.push_back(member->id);
  options.excluded = excluded;
  options.bodiless = true;  // only a target for the move: the request itself is admitted later
  auto choice = balancer_.choose(in_.route(), options);
  if (!choice) return nullptr;
  balancer_.ended(choice->booking, Outcome::neither);
  return choice->endpoint;
}

void Forwarding::send_after_move(bool moved, const std::shared_ptr<const Endpoint>& to) {
  cancel_move_ = {};
  context_.metrics.session_moved(moved);
  if (moved) learn_session(to);
  context_.moves.end(session_key(in_.route().model), to->name);
  send_to(to->name);
}

void Forwarding::send_to(const std::string& worker) {
  if (is<Over>()) return;
  owner_ = worker;
  if (in_.left_ms() == 0) return refuse_late();
  if (!send()) no_worker();
}

// Routes of a session name no model, so the session is also stored without its model.
void Forwarding::learn_session(const std::shared_ptr<const Endpoint>& worker) {
  for (const std::string& model : {in_.route().model, std::string()})
    if (const std::string key = session_key(model); !key.empty()) context_.sessions.learn(key, worker);
}

// Called when the worker has answered.
void Forwarding::note_session(const Attempt& attempt) {
  if (attempt.answer.status / 100 == 2) learn_session(attempt.choice.endpoint);
}

}  // namespace octavo::fleet
