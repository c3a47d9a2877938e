#include "fleet/view/fleet_view.h"

#include <algorithm>

#include "base/check.h"

namespace octavo::fleet {
namespace {

auto lower_bound_of(auto& members, EndpointId id) {
  return std::ranges::lower_bound(members, id, {}, &Member::id);
}

}  // namespace

std::string_view ip_of(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  return colon != std::string_view::npos && !address.ends_with(']') ? address.substr(0, colon) : address;
}

const Member* FleetView::find(EndpointId id) const {
  const auto found = lower_bound_of(members, id);
  return found != members.end() && found->id == id ? &*found : nullptr;
}

const Member* FleetView::find(std::string_view name) const {
  const auto found = std::ranges::find_if(members, [&](const Member& m) { return m.endpoint->name == name; });
  return found != members.end() ? &*found : nullptr;
}

Fleet::Fleet() : view_(std::make_shared<const FleetView>()) {}

void Fleet::publish(FleetView next) {
  ++next.epoch;
  next.id_limit = taken_.size();
  view_.store(std::make_shared<const FleetView>(std::move(next)));
}

Result<EndpointId> Fleet::add(Endpoint endpoint) {
  const std::lock_guard lock(writers_);
  FleetView next = *view();
  if (next.find(endpoint.name)) return invalid("url", "the endpoint {} occurs twice", endpoint.name);
  const auto free = std::ranges::find(taken_, false);
  const auto id = static_cast<EndpointId>(free - taken_.begin());
  if (id == kEndpointsMax)
    return failure(ErrorCode::resource_exhausted, "a fleet may have at most {} endpoints", kEndpointsMax);
  if (free == taken_.end()) taken_.push_back(false);
  taken_[id] = true;
  const EndpointState state{.block_size = endpoint.block_size};
  next.members.insert(lower_bound_of(next.members, id),
                      Member{id, std::make_shared<const Endpoint>(std::move(endpoint)), state});
  publish(std::move(next));
  return id;
}

void Fleet::describe(EndpointId id, Endpoint endpoint) {
  update([&](Member& member) {
    if (member.id != id) return false;
    member.endpoint = std::make_shared<const Endpoint>(std::move(endpoint));
    return true;
  });
}

void Fleet::update(const std::function<bool(Member&)>& change) {
  const std::lock_guard lock(writers_);
  FleetView next = *view();
  bool changed = false;
  for (Member& member : next.members) changed = change(member) || changed;
  if (changed) publish(std::move(next));
}

void Fleet::update(EndpointId id, const std::function<void(EndpointState&)>& change) {
  update([&](Member& member) {
    if (member.id != id) return false;
    change(member.state);
    return true;
  });
}

bool Fleet::remove(EndpointId id) {
  const std::lock_guard lock(writers_);
  FleetView next = *view();
  if (!next.find(id)) return false;
  next.members.erase(lower_bound_of(next.members, id));
  publish(std::move(next));
  return true;
}

void Fleet::release(EndpointId id) {
  const std::lock_guard lock(writers_);
  CHECK(id < taken_.size() && taken_[id] && !view()->find(id), "endpoint {} is not a removed one", id);
  taken_[id] = false;
}

std::string_view address_of(std::string_view name) { return name.substr(0, name.find('@')); }

}  // namespace octavo::fleet
