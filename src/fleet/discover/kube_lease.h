// Leader election among pickers with a Kubernetes Lease, as in client-go: the holder renews the lease. If the
// lease was not renewed for its duration, another picker takes it.
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

// Decides how to change the lease. Time is an argument. A lease of another holder expires by the time since
// its last visible change, not by the time written in it.
class LeaseElection {
 public:
  // identity: unique among the pickers; name: name of the lease.
  LeaseElection(std::string identity, std::string name)
      : identity_(std::move(identity)), name_(std::move(name)) {}

  // The lease to write instead of `seen`, the current one (null if missing). nullopt: another picker holds
  // it. wall: current time, in RFC 3339 with microseconds.
  std::optional<boost::json::object> claim(const boost::json::object* seen, std::int64_t now_us,
                                           std::string_view wall);
  void claimed(std::int64_t now_us) { renewed_us_ = now_us; }
  void lost() { renewed_us_.reset(); }

  // Whether this picker holds the lease. If it cannot renew the lease for some time, it stops leading before
  // another picker can take over.
  bool leads(std::int64_t now_us) const;

 private:
  const std::string identity_;
  const std::string name_;
  std::string seen_;          // last version of another holder's lease
  std::int64_t seen_us_ = 0;  // time when this version was first seen
  std::optional<std::int64_t> renewed_us_;
};

class KubeLease {
 public:
  // Checks the lease every two seconds. `changed` is called on a separate thread: with the initial state,
  // then after each change.
  KubeLease(KubeApi api, std::string space, std::string name, std::string identity,
            std::function<void(bool leads)> changed);
  ~KubeLease();  // does not release our lease, which expires

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
