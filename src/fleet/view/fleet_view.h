// The table of all endpoints, and snapshots of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Immutable snapshot of all endpoints. Readers need no lock, and may keep the snapshot.
struct FleetView {
  std::uint64_t epoch = 0;
  std::vector<Member> members = {};  // sorted by id, with gaps
  // greater than all ids: the size of arrays that are indexed by EndpointId
  std::size_t id_limit = 0;

  const Member* find(EndpointId id) const;          // null: unknown endpoint
  const Member* find(std::string_view name) const;  // takes linear time; null: unknown endpoint
};

inline constexpr std::size_t kEndpointsMax = 4096;

// The table of endpoints. Thread-safe; view() never waits.
class Fleet {
 public:
  Fleet();

  // Returns an error if the name exists (invalid_argument) or the fleet has kEndpointsMax endpoints
  // (resource_exhausted).
  Result<EndpointId> add(Endpoint endpoint);

  // Replaces the endpoint's description. The name must stay the same.
  void describe(EndpointId id, Endpoint endpoint);

  // Publishes one new view with all changes. `change` is called for each member, and returns whether it has
  // changed the member.
  void update(const std::function<bool(Member&)>& change);
  void update(EndpointId id, const std::function<void(EndpointState&)>& change);

  // Removes the endpoint from the view. Its id stays reserved until the caller calls release(), which is
  // allowed when no request uses the endpoint and no index contains the id.
  bool remove(EndpointId id);
  void release(EndpointId id);

  std::shared_ptr<const FleetView> view() const { return view_.load(); }

 private:
  void publish(FleetView next);

  std::mutex writers_;
  std::vector<bool> taken_;  // [EndpointId] whether the id is reserved
  std::atomic<std::shared_ptr<const FleetView>> view_;
};

}  // namespace octavo::fleet
