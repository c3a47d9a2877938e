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

// Immutable snapshot of all endpoints: readers need no lock and can keep it.
struct FleetView {
  std::uint64_t epoch = 0;           // increases with every change
  std::vector<Member> members = {};  // sorted by id; ids may have gaps
  // exclusive upper bound of all ids: the size of arrays that are indexed by EndpointId
  std::size_t id_limit = 0;

  const Member* find(EndpointId id) const;          // null: unknown endpoint
  const Member* find(std::string_view name) const;  // null: unknown endpoint; takes linear time
};

inline constexpr std::size_t kEndpointsMax = 4096;

// The table of endpoints. Writers exclude each other; view() never waits.
class Fleet {
 public:
  Fleet();

  // Errors: the name exists (invalid_argument), there are kEndpointsMax endpoints (resource_exhausted).
  Result<EndpointId> add(Endpoint endpoint);

  // Replaces the endpoint's description, such as its models or role. The name must stay the same.
  void describe(EndpointId id, Endpoint endpoint);

  // Changes states in one step. `change` is called for each member, and returns whether the member has
  // changed.
  void update(const std::function<bool(Member&)>& change);
  void update(EndpointId id, const std::function<void(EndpointState&)>& change);

  // Removes the endpoint from the view. The id stays reserved until release(), which the caller must call
  // when no request uses the endpoint and no index contains the id.
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
