// Leader election among pickers with a Kubernetes Lease, as in client-go. The holder renews the lease
// regularly. If it does not, another picker takes the lease.
#pragma once

#include <boost/json/fwd.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "fleet/discover/kube_api.h"

namespace octavo::fleet {

// Decides when to write the lease. The class has no clock. The timestamps in the lease are ignored: another
// picker's lease expires if this picker has seen no change of it for the duration in the lease.
class LeaseElection {
 public:
  // `identity` must be unique among the pickers. `name` is the lease's name.
  LeaseElection(std::string identity, std::string name)
      : identity_(std::move(identity)), name_(std::move(name)) {}

  // Returns the lease to write. Returns nullopt if another picker holds the lease. `seen` is the current
  // lease, or null if it does not exist. `wall` is the current time in RFC 3339 format with microseconds.
  std::optional<boost::json::object> claim(const boost::json::object* seen, std::int64_t now_us,
                                           std::string_view wall);
  void claimed(std::int64_t now_us) { renewed_us_ = now_us; }
  void lost() { renewed_us_.reset(); }

  // Returns whether this picker holds the lease. A picker that cannot renew its lease returns false some
  // seconds before the lease expires.
  bool leads(std::int64_t now_us) const;

 private:
  const std::string identity_;
  const std::string name_;
  std::string seen_;  // spec of the lease that another picker holds, as last seen
  // time at which seen_ last changed
  std::int64_t seen_us_ = 0;
  std::optional<std::int64_t> renewed_us_;
};

class KubeLease {
 public:
  // Checks the lease every two seconds. Calls `changed` on a separate thread with the initial state, and
  // after each change.
  KubeLease(KubeApi api, std::string space, std::string name, std::string identity,
            std::function<void(bool leads)> changed);
  ~KubeLease();  // does not release the lease, which then expires

 private:
  void run();
  Result<> once();

  const KubeApi api_;
  const std::string collection_;
  const std::string name_;
  const std::function<void(bool)> changed_;
  LeaseElection election_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
