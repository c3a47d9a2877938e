// Table of all endpoints, and its immutable snapshots.
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

// A snapshot of all endpoints. Immutable, so readers need no lock and can keep it.
struct FleetView {
  std::uint64_t epoch = 0;           // increases with every change
  std::vector<Member> members = {};  // sorted by id; ids may have gaps
  std::size_t id_limit = 0;          // all ids are below this: the size of arrays indexed by endpoint

  const Member* find(EndpointId id) const;          // null: not in the fleet
  const Member* find(std::string_view name) const;  // null: not in the fleet; takes linear time
};

inline constexpr std::size_t kEndpointsMax = 4096;

// Endpoints can be added, changed and removed. Writers lock each other out; view() never waits.
class Fleet {
 public:
  Fleet();

  // Errors: the name exists (invalid_argument), there are kEndpointsMax endpoints (resource_exhausted).
  Result<EndpointId> add(Endpoint endpoint);

  // Replaces the endpoint's description, for example its models or role. The name must not change.
  void describe(EndpointId id, Endpoint endpoint);

  // Changes states in one step. `change` is called for each member, and returns whether it has changed it.
  void update(const std::function<bool(Member&)>& change);
  void update(EndpointId id, const std::function<void(EndpointState&)>& change);

  // Removes the endpoint from the view. The id stays reserved until release(). The owner must call that when
  // no request is running there and no index contains the id.
  bool remove(EndpointId id);
  void release(EndpointId id);

  std::shared_ptr<const FleetView> view() const { return view_.load(); }

 private:
  void publish(FleetView next);

  std::mutex writers_;
  std::vector<bool> taken_;  // [EndpointId]
  std::atomic<std::shared_ptr<const FleetView>> view_;
};

}  // namespace octavo::fleet
