// Snapshots of all endpoints, and the table that they are copied from.
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

// Immutable once published: readers keep it as long as they like and lock nothing.
struct FleetView {
  std::uint64_t epoch = 0;           // grows with every change
  std::vector<Member> members = {};  // by id, ascending; ids may have gaps
  std::size_t id_limit = 0;          // all ids are below: the size of tables by endpoint

  const Member* find(EndpointId id) const;          // null if not in the fleet
  const Member* find(std::string_view name) const;  // linear
};

inline constexpr std::size_t kEndpointsMax = 4096;

// Endpoints are added, changed and removed. Writers exclude each other; view() never waits.
class Fleet {
 public:
  Fleet();

  // Errors: the name is taken (invalid_argument), kEndpointsMax are there (resource_exhausted).
  Result<EndpointId> add(Endpoint endpoint);

  // Replaces the endpoint's description (models found out, role changed); its name stays.
  void describe(EndpointId id, Endpoint endpoint);

  // Changes states in one step; `change` is called for each member and returns whether it changed it.
  void update(const std::function<bool(Member&)>& change);
  void update(EndpointId id, const std::function<void(EndpointState&)>& change);

  // Removes it from the view at once. The id stays reserved until release(), which the owner calls when no
  // request is in flight there and no index has it.
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
