// Leader election among pickers by a Kubernetes Lease, as in client-go: the holder renews it; another picker
// takes it if it was not renewed for its duration.
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

// Decides how to change the lease. Time is an argument. For another holder's lease, the time since its last
// visible change counts, not the time written in it.
class LeaseElection {
 public:
  // identity: of no other picker; name: the lease's.
  LeaseElection(std::string identity, std::string name)
      : identity_(std::move(identity)), name_(std::move(name)) {}

  // The lease to write in place of `seen`, the current one (null if missing); nullopt if another picker holds
  // it.
  // `wall`: now, in RFC 3339 with microseconds.
  std::optional<boost::json::object> claim(const boost::json::object* seen, std::int64_t now_us,
                                           std::string_view wall);
  // The claimed lease was written.
  void claimed(std::int64_t now_us) { renewed_us_ = now_us; }
  void lost() { renewed_us_.reset(); }

  // Whether this picker holds the lease. If it cannot renew for some time, it steps down before others take
  // over.
  bool leads(std::int64_t now_us) const;

 private:
  const std::string identity_;
  const std::string name_;
  std::string seen_;          // the other holder's lease as it was last seen,
  std::int64_t seen_us_ = 0;  // since when
  std::optional<std::int64_t> renewed_us_;
};

class KubeLease {
 public:
  // Checks every two seconds. `changed` is called on a separate thread, first with the initial state.
  KubeLease(KubeApi api, std::string space, std::string name, std::string identity,
            std::function<void(bool leads)> changed);
  ~KubeLease();  // a lease that is ours is left to run out

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
