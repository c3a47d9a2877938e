// Leader election among pickers by a Kubernetes Lease, as client-go does it: one holds it and renews it, and
// who sees that it was not renewed for its duration takes it.
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

// What to do about the lease. Time is an argument: of another one's lease what counts is since when it looks
// as it does, not what its clock wrote there.
class LeaseElection {
 public:
  // identity: of no other picker; name: the lease's.
  LeaseElection(std::string identity, std::string name)
      : identity_(std::move(identity)), name_(std::move(name)) {}

  // The lease to write in place of the one seen (null: there is none); nothing: it is somebody else's.
  // `wall`: now as RFC 3339 with microseconds.
  std::optional<boost::json::object> claim(const boost::json::object* seen, std::int64_t now_us,
                                           std::string_view wall);
  // What was written is the lease now.
  void claimed(std::int64_t now_us) { renewed_us_ = now_us; }
  void lost() { renewed_us_.reset(); }

  // Whether it is ours: one that could not be renewed for some time is given up before others take it.
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
  // Asks every two seconds; `changed` is told on a thread of its own, first when it is known.
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
