// Dispatcher's requests in flight, as routers of the same workers report them to each other.
#include <utility>

#include "fleet/proxy/dispatcher.h"

namespace octavo::fleet {

void Dispatcher::watch_loads(std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  loads_changed_ = std::move(changed);
}

// Its growth with an answer is told together with the next change.
void Dispatcher::load_changed(EndpointId id) {
  slots_[id].load_changed = true;
  if (loads_changed_ && std::exchange(loads_are_told_, false)) loads_changed_();
}

std::vector<WorkerLoad> Dispatcher::changed_loads(bool all) {
  const std::lock_guard lock(mutex_);
  loads_are_told_ = true;
  std::vector<WorkerLoad> loads;
  const auto view = fleet_.view();
  for (const Member& member : view->members) {
    const Load load = inflight_.own(member.id);
    const bool changed = std::exchange(slots_[member.id].load_changed, false);
    if (all ? load != Load{} : changed) loads.push_back({member.endpoint->name, load});
  }
  return loads;
}

void Dispatcher::peer_told(const LoadMessage& message) {
  const std::lock_guard lock(mutex_);
  metrics_.peer_told(true);
  if (message.all) inflight_.forget_peer(message.sender);
  for (const auto& [worker, load] : message.workers)
    if (const auto known = ids_.find(worker); known != ids_.end())
      inflight_.peer_has(message.sender, known->second, load);
}

void Dispatcher::peer_gone(PeerId peer) {
  const std::lock_guard lock(mutex_);
  inflight_.forget_peer(peer);
}

Load Dispatcher::load(EndpointId id) const {
  const std::lock_guard lock(mutex_);
  return inflight_.own(id);
}

Load Dispatcher::load_of_peers(EndpointId id) const {
  const std::lock_guard lock(mutex_);
  return inflight_.of_peers(id);
}

}  // namespace octavo::fleet
